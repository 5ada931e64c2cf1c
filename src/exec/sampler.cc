#include "exec/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/random.h"
#include "kernels/kernel_table.h"
#include "kernels/maths.h"

namespace cachalot::exec {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

uint32_t CountOf(std::span<const float> logits) { return static_cast<uint32_t>(logits.size()); }

float LogprobOf(float logit, const kernels::LogSumExp& normaliser) {
  if (logit != logit || logit == -kInfinity) return -kInfinity;
  if (normaliser.max == kInfinity) return logit == kInfinity ? -normaliser.log_sum : -kInfinity;
  return (logit - normaliser.max) - normaliser.log_sum;
}

// The `count` largest logits that are not NaN, best first, ties by lower id.
std::vector<TokenLogprob> BestLogits(std::span<const float> logits, uint32_t count) {
  std::vector<TokenLogprob> best;
  if (count == 0) return best;
  best.reserve(std::min<size_t>(count, logits.size()) + 1);
  for (TokenId token = 0; token < logits.size(); ++token) {
    const float logit = logits[token];
    if (logit != logit || (best.size() == count && !(logit > best.back().logprob))) continue;
    const auto place = std::upper_bound(best.begin(), best.end(), logit,
                                        [](float value, const TokenLogprob& other) { return value > other.logprob; });
    best.insert(place, {token, logit});
    if (best.size() > count) best.pop_back();
  }
  return best;
}

bool HasPenalties(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.presence_penalty != 0 || params.frequency_penalty != 0;
}

}  // namespace

SampledToken Sampler::Sample(const SamplingParams& params, const SampleInput& input) {
  CACHALOT_CHECK(!input.logits.empty());
  const std::span<const float> scores = Adjust(params, input);
  SampledToken sampled;
  sampled.token = kernels_.argmax(scores.data(), CountOf(scores));
  const float best = scores[sampled.token];
  // Without anything above -inf there is nothing to weigh.
  if (params.temperature > 0 && best > -kInfinity) sampled.token = Draw(params, input, scores, best);
  if (params.logprobs < 0) return sampled;
  return Score(input.logits, sampled.token, static_cast<uint32_t>(params.logprobs));
}

std::span<const float> Sampler::Adjust(const SamplingParams& params, const SampleInput& input) {
  if (params.logit_bias.empty() && !HasPenalties(params)) return input.logits;
  scores_.assign(input.logits.begin(), input.logits.end());
  for (const auto& [token, bias] : params.logit_bias) {
    CACHALOT_CHECK(token < scores_.size());
    scores_[token] += bias;
  }
  if (HasPenalties(params)) Penalise(params, input);
  return scores_;
}

void Sampler::MarkSeen(TokenId token, uint32_t occurrences) {
  CACHALOT_CHECK(token < scores_.size());
  if (!is_seen_[token]) seen_.push_back(token);
  is_seen_[token] = true;
  occurrences_[token] += occurrences;
}

void Sampler::Penalise(const SamplingParams& params, const SampleInput& input) {
  occurrences_.resize(scores_.size(), 0);
  is_seen_.resize(scores_.size(), false);
  seen_.reserve(scores_.size());
  if (params.repetition_penalty != 1) {
    for (const TokenId token : input.prompt) MarkSeen(token, 0);
  }
  for (const TokenId token : input.output) MarkSeen(token, 1);
  for (const TokenId token : seen_) {
    float& score = scores_[token];
    score = score > 0 ? score / params.repetition_penalty : score * params.repetition_penalty;
    const uint32_t occurrences = occurrences_[token];
    if (occurrences > 0) {
      score -= params.presence_penalty;
      score -= params.frequency_penalty * static_cast<float>(occurrences);
    }
    occurrences_[token] = 0;
    is_seen_[token] = false;
  }
  seen_.clear();
}

TokenId Sampler::Draw(const SamplingParams& params, const SampleInput& input, std::span<const float> scores,
                      float best) {
  weights_.resize(scores.size());
  if (best == kInfinity) {
    std::transform(scores.begin(), scores.end(), weights_.begin(),
                   [](float s) { return s == kInfinity ? 1.0f : 0.0f; });
  } else {
    // A temperature too small for its inverse is the smallest that has one.
    const float inverse = 1.0f / std::max(params.temperature, std::numeric_limits<float>::min());
    kernels_.exp_shifted(scores.data(), best, inverse, CountOf(scores), weights_.data());
  }
  distribution_.Assign(scores, weights_);
  if (params.top_k > 0 && params.top_k < scores.size()) distribution_.KeepBest(params.top_k);
  if (params.top_p < 1) distribution_.KeepMass(params.top_p);
  if (params.min_p > 0) distribution_.KeepWeight(params.min_p);
  return distribution_.Draw(UniformAt(params.seed, input.choice, input.position));
}

kernels::LogSumExp Sampler::Normaliser(std::span<const float> logits) {
  const kernels::LogSumExp sum = kernels_.log_sum_exp(logits.data(), CountOf(logits));
  if (sum.log_sum == sum.log_sum) return sum;
  if (sum.max == kInfinity) {
    const auto winners = static_cast<float>(std::count(logits.begin(), logits.end(), kInfinity));
    return {.max = kInfinity, .log_sum = kernels::Log(winners)};
  }
  scores_.resize(logits.size());
  std::transform(logits.begin(), logits.end(), scores_.begin(), [](float x) { return x == x ? x : -kInfinity; });
  return kernels_.log_sum_exp(scores_.data(), CountOf(logits));
}

SampledToken Sampler::Score(std::span<const float> logits, TokenId token, uint32_t top) {
  CACHALOT_CHECK(token < logits.size());
  const kernels::LogSumExp normaliser = Normaliser(logits);
  SampledToken scored;
  scored.token = token;
  scored.logprob = LogprobOf(logits[token], normaliser);
  scored.top = BestLogits(logits, top);
  for (TokenLogprob& entry : scored.top) entry.logprob = LogprobOf(logits[entry.token], normaliser);
  return scored;
}

}  // namespace cachalot::exec
