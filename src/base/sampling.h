// SamplingParams and TokenLogprobs: how a token is chosen, and what is said about the choice.
// Threads:   plain data.
// Ownership: none.
// Invariant: Validate lists every field that is out of range.
// Cost:      none.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace cachalot {

// Applied in this order: logit bias, repetition / presence / frequency penalties, temperature, then top-k, top-p and
// min-p on the resulting distribution. Logprobs are those of the model's raw logits.
struct SamplingParams {
  float temperature = 1.0f;  // 0: greedy
  uint32_t top_k = 0;        // 0: all
  float top_p = 1.0f;        // (0, 1]
  float min_p = 0.0f;        // [0, 1]: keep tokens with at least this share of the best one's probability
  float repetition_penalty =
      1.0f;  // > 0; divides positive and multiplies negative logits of tokens seen in prompt or output
  float presence_penalty = 0.0f;                      // [-2, 2]; subtracted once for tokens seen in the output
  float frequency_penalty = 0.0f;                     // [-2, 2]; subtracted per occurrence in the output
  std::vector<std::pair<TokenId, float>> logit_bias;  // ascending by token, each in [-100, 100]
  uint64_t seed = 0;
  int32_t logprobs = -1;  // -1: none; else the chosen token's and that many of the best (0 to 20)
};

// Each problem names the field, its value and what is allowed. Empty: valid.
std::vector<std::string> Problems(const SamplingParams& params, uint32_t vocabulary);

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0;
  bool operator==(const TokenLogprob&) const = default;
};

struct SampledToken {
  TokenId token = 0;
  float logprob = 0;              // of `token`; 0 unless asked for
  std::vector<TokenLogprob> top;  // best first, ties by lower id
  bool operator==(const SampledToken&) const = default;
};

}  // namespace cachalot
