// Sampler picks a token from a row of logits.
// Threads:   one Sampler per compute thread: it keeps scratch buffers. Its result depends on its arguments only.
// Ownership: borrows the kernel table.
// Invariant: equal logits, parameters, history, choice and position give the equal token and logprobs, to the bit,
//            on every instruction set. Ties go to the lower id.
// Cost:      greedy without penalties is one pass; else linear in the vocabulary plus sorting what top-k/top-p keep.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/sampling.h"

namespace cachalot::kernels {
struct KernelTable;
}

namespace cachalot::exec {

struct SampleInput {
  std::span<const float> logits;
  std::span<const TokenId> prompt;  // for the repetition penalty
  std::span<const TokenId> output;  // tokens generated so far, for all penalties
  uint32_t choice = 0;              // index of the sequence within its request: part of the random counter
  uint64_t position = 0;            // of the token that is being chosen: the other part
};

class Sampler {
 public:
  explicit Sampler(const kernels::KernelTable& kernels) : kernels_(kernels) {}

  SampledToken Sample(const SamplingParams& params, const SampleInput& input);

  // Logprob of a given token and the best `top` ones of a row of raw logits (echoed prompts, perplexity).
  SampledToken Score(std::span<const float> logits, TokenId token, uint32_t top);

 private:
  const kernels::KernelTable& kernels_;
  std::vector<float> scores_;
  std::vector<TokenId> order_;
};

}  // namespace cachalot::exec
