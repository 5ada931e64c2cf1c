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
#include "exec/token_distribution.h"

namespace cachalot::kernels {
struct KernelTable;
struct LogSumExp;
}  // namespace cachalot::kernels

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
  virtual ~Sampler() = default;

  // Requires at least one logit, no problem in `params` for that vocabulary, and tokens inside it.
  // A NaN logit is never chosen unless all are NaN, which gives token 0; +inf outdoes everything finite.
  virtual SampledToken Sample(const SamplingParams& params, const SampleInput& input);

  // Logprob of a given token and the best `top` ones of a row of raw logits (echoed prompts, perplexity). NaN logits
  // are left out; a token that is one, or that is -inf, has logprob -inf.
  virtual SampledToken Score(std::span<const float> logits, TokenId token, uint32_t top);

 private:
  std::span<const float> Adjust(const SamplingParams& params, const SampleInput& input);
  void Penalise(const SamplingParams& params, const SampleInput& input);
  void MarkSeen(TokenId token, uint32_t occurrences);
  TokenId Draw(const SamplingParams& params, const SampleInput& input, std::span<const float> scores, float best);
  kernels::LogSumExp Normaliser(std::span<const float> logits);

  const kernels::KernelTable& kernels_;
  std::vector<float> scores_;          // logits after bias and penalties
  std::vector<float> weights_;         // exp of the shifted, scaled scores
  std::vector<uint32_t> occurrences_;  // by token, in the output; all zero between calls
  std::vector<TokenId> seen_;          // tokens of prompt and output, each once
  std::vector<bool> is_seen_;          // by token; all false between calls
  TokenDistribution distribution_;
};

}  // namespace cachalot::exec
