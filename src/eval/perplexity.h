// MeasurePerplexity scores a text with a model, as llama.cpp's perplexity tool defines it.
// Threads:   steps the engine on the calling thread.
// Ownership: borrows the engine, which must be idle.
// Invariant: deterministic; what the engine's batching does never changes the result.
// Cost:      one forward pass over every token.
//
// The text is cut into chunks of `context` tokens; in each, the tokens after the first half are scored given all
// before them. A model that begins texts with a token has it in place of each chunk's first token.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "base/ids.h"
#include "base/status.h"

namespace cachalot::engine {
class Engine;
}

namespace cachalot::eval {

struct PerplexityOptions {
  uint32_t context = 512;   // tokens per chunk, at least 4
  uint32_t max_chunks = 0;  // 0: all
  uint32_t parallel = 4;    // chunks given to the engine at once
  std::optional<TokenId> bos;
};

struct Perplexity {
  double perplexity = 0;
  double standard_error = 0;  // of perplexity
  uint64_t scored_tokens = 0;
  uint32_t chunks = 0;
};

// Called after each chunk with the running result.
using PerplexityProgress = std::function<void(const Perplexity&)>;

// kInvalid when the text is shorter than two chunks.
Result<Perplexity> MeasurePerplexity(std::span<const TokenId> tokens, const PerplexityOptions& options,
                                     engine::Engine& engine, const PerplexityProgress& progress);

}  // namespace cachalot::eval
