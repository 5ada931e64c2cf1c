// Tiny models of every supported architecture, with seeded weights, for tests.
// Threads:   pure functions.
// Ownership: results own their bytes.
// Invariant: the same options give the same bytes on every machine.
// Cost:      linear in the weights.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/testing/gguf_builder.h"

namespace cachalot::model {

struct TinyModelOptions {
  std::string architecture = "llama";  // llama, qwen2 or gemma3
  uint32_t layers = 2;
  uint32_t width = 40;
  uint32_t heads = 5;
  uint32_t kv_heads = 1;
  uint32_t head_dim = 8;
  uint32_t ffn_width = 48;
  uint32_t vocabulary = 67;
  uint32_t context_tokens = 256;
  uint32_t window = 16;  // gemma3 only
  bool tied_output = true;
  uint64_t seed = 1;
};

// Values from -0.5 to 0.5 that depend on seed and name only.
std::vector<float> SeededFloats(uint64_t seed, std::string_view name, uint64_t count);

// Metadata and F32 tensors of such a model, without a tokenizer, to build as it is or to change first.
GgufBuilder TinyModel(const TinyModelOptions& options);

}  // namespace cachalot::model
