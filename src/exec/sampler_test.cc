#include "exec/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "kernels/kernel_table.h"

namespace cachalot::exec {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

const kernels::KernelTable& Scalar() { return *kernels::RunnableTables().back(); }

std::vector<float> RandomLogits(uint64_t seed, size_t count, double spread = 10) {
  SplitMix64 random(seed);
  std::vector<float> logits;
  for (size_t i = 0; i < count; ++i) logits.push_back(static_cast<float>((random.Uniform() - 0.5) * spread));
  return logits;
}

SampledToken SampleOnce(const SamplingParams& params, const SampleInput& input) {
  return Sampler(Scalar()).Sample(params, input);
}

TokenId Greedy(SamplingParams params, const SampleInput& input) {
  params.temperature = 0;
  return SampleOnce(params, input).token;
}

TokenId NaiveArgmax(const std::vector<float>& x) {
  return static_cast<TokenId>(std::max_element(x.begin(), x.end()) - x.begin());
}

// --- Distribution: counts over many positions against a literal softmax in double.

// The probabilities that `params` ask for, by definition.
std::vector<double> NaiveProbabilities(const SamplingParams& params, std::span<const float> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  std::vector<double> p;
  for (const float x : logits) p.push_back(std::exp((x - top) / params.temperature));
  std::vector<TokenId> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) { return p[a] > p[b]; });
  const double best = p[order[0]];
  const auto drop_from = [&](size_t rank) {
    for (size_t i = rank; i < order.size(); ++i) p[order[i]] = 0;
  };
  if (params.top_k > 0) drop_from(std::min<size_t>(params.top_k, order.size()));
  double total = std::accumulate(p.begin(), p.end(), 0.0);
  double sum = 0;
  size_t kept = 0;
  while (kept < order.size() && (kept == 0 || sum < params.top_p * total)) sum += p[order[kept++]];
  if (params.top_p < 1) drop_from(kept);
  for (double& x : p) x = x >= params.min_p * best ? x : 0;
  total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= total;
  return p;
}

void ExpectDistribution(SamplingParams params, std::span<const float> logits) {
  const std::vector<double> expected = NaiveProbabilities(params, logits);
  constexpr int kDraws = 25'000;
  std::vector<int> counts(logits.size(), 0);
  Sampler sampler(Scalar());
  for (int i = 0; i < kDraws; ++i) {
    ++counts[sampler.Sample(params, {.logits = logits, .position = static_cast<uint64_t>(i)}).token];
  }
  double chi_square = 0;
  double degrees = -1;
  double rare_expected = 0;
  double rare_count = 0;
  for (size_t t = 0; t < expected.size(); ++t) {
    EXPECT_TRUE(expected[t] > 0 || counts[t] == 0) << "token " << t;
    if (expected[t] * kDraws < 10) {
      rare_expected += expected[t] * kDraws;
      rare_count += counts[t];
      continue;
    }
    chi_square += std::pow(counts[t] - expected[t] * kDraws, 2) / (expected[t] * kDraws);
    ++degrees;
  }
  if (rare_expected > 1) {
    chi_square += std::pow(rare_count - rare_expected, 2) / rare_expected;
    ++degrees;
  }
  EXPECT_LT(chi_square, degrees + 4 * std::sqrt(2 * std::max(degrees, 1.0))) << degrees << " degrees";
}

TEST(SamplerDistribution, FollowsSoftmaxAtEveryTemperature) {
  const std::vector<float> logits = RandomLogits(1, 40, 6);
  for (const float temperature : {0.3f, 0.7f, 1.0f, 2.0f, 50.0f}) {
    ExpectDistribution({.temperature = temperature, .seed = 11}, logits);
  }
}

TEST(SamplerDistribution, FollowsTheCutDistribution) {
  const std::vector<float> logits = RandomLogits(2, 60, 8);
  ExpectDistribution({.top_k = 5, .seed = 1}, logits);
  ExpectDistribution({.top_p = 0.8f, .seed = 2}, logits);
  ExpectDistribution({.min_p = 0.1f, .seed = 3}, logits);
  ExpectDistribution({.top_k = 20, .top_p = 0.9f, .min_p = 0.02f, .seed = 4}, logits);
  ExpectDistribution({.temperature = 1.7f, .top_k = 30, .top_p = 0.95f, .seed = 5}, logits);
}

TEST(SamplerDistribution, SeedsChoicesAndPositionsDrawIndependently) {
  const std::vector<float> logits(64, 0.0f);
  Sampler sampler(Scalar());
  std::vector<std::vector<TokenId>> streams;
  for (const uint64_t seed : {1, 2}) {
    for (const uint32_t choice : {0, 1}) {
      std::vector<TokenId>& stream = streams.emplace_back();
      for (uint64_t position = 0; position < 2000; ++position) {
        const SampleInput input{.logits = logits, .choice = choice, .position = position};
        stream.push_back(sampler.Sample({.seed = seed}, input).token);
        EXPECT_EQ(stream.back(), static_cast<TokenId>(UniformAt(seed, choice, position) * 64));
      }
    }
  }
  for (size_t a = 0; a < streams.size(); ++a) {
    for (size_t b = a + 1; b < streams.size(); ++b) {
      int same = 0;
      for (size_t i = 0; i < streams[a].size(); ++i) same += streams[a][i] == streams[b][i] ? 1 : 0;
      EXPECT_NEAR(same, 2000.0 / 64, 30);
    }
  }
}

// --- Edges of the cuts.

std::map<TokenId, int> Drawn(const SamplingParams& params, std::span<const float> logits) {
  std::map<TokenId, int> drawn;
  Sampler sampler(Scalar());
  for (uint64_t i = 0; i < 3000; ++i) ++drawn[sampler.Sample(params, {.logits = logits, .position = i}).token];
  return drawn;
}

TEST(SamplerCuts, KeepingOneTokenIsGreedy) {
  const std::vector<float> logits = RandomLogits(3, 100);
  const std::map<TokenId, int> best{{NaiveArgmax(logits), 3000}};
  EXPECT_EQ(Drawn({.top_k = 1}, logits), best);
  EXPECT_EQ(Drawn({.top_p = 1e-6f}, logits), best);
  EXPECT_EQ(Drawn({.min_p = 1.0f}, logits), best);
  EXPECT_EQ(Drawn({.temperature = 1e-7f}, logits), best);
  EXPECT_EQ(Drawn({.temperature = std::numeric_limits<float>::denorm_min()}, logits), best);
}

TEST(SamplerCuts, KeepingAllChangesNothing) {
  const std::vector<float> logits = RandomLogits(4, 30, 3);
  const std::map<TokenId, int> all = Drawn({.seed = 5}, logits);
  EXPECT_EQ(all.size(), 30u);
  EXPECT_EQ(Drawn({.top_k = 30, .seed = 5}, logits), all);
  EXPECT_EQ(Drawn({.top_k = 31, .seed = 5}, logits), all);
  EXPECT_EQ(Drawn({.top_k = UINT32_MAX, .seed = 5}, logits), all);
  EXPECT_EQ(Drawn({.top_p = 1.0f, .min_p = 1e-9f, .seed = 5}, logits), all);
}

TEST(SamplerCuts, TiesAtTheBoundaryGoToTheLowerIds) {
  const std::vector<float> logits = {1, 2, 1, 3, 1, 1};
  std::map<TokenId, int> drawn = Drawn({.temperature = 5, .top_k = 4}, logits);
  EXPECT_EQ(drawn.size(), 4u);
  for (const TokenId kept : {0, 1, 2, 3}) EXPECT_GT(drawn[kept], 0);
  drawn = Drawn({.top_p = 0.5f}, std::vector<float>(10, -2.0f));
  EXPECT_EQ(drawn.size(), 5u);
  EXPECT_EQ(drawn.rbegin()->first, 4u);
  const SampleInput flat{.logits = logits};
  EXPECT_EQ(Greedy({}, {.logits = std::vector<float>(10, -2.0f)}), 0u);
  EXPECT_EQ(Greedy({}, flat), 3u);
}

TEST(SamplerCuts, OneTokenVocabularyWorks) {
  const std::vector<float> logits = {-5};
  const SampledToken sampled = SampleOnce({.top_p = 0.5f, .logprobs = 3}, {.logits = logits});
  EXPECT_EQ(sampled.token, 0u);
  EXPECT_EQ(sampled.logprob, 0);
  EXPECT_EQ(sampled.top.size(), 1u);
}

// --- Bias and penalties.

TEST(SamplerBias, MinusHundredForbidsAndHundredForces) {
  std::vector<float> logits = RandomLogits(5, 50);
  const TokenId best = NaiveArgmax(logits);
  EXPECT_NE(Greedy({.logit_bias = {{best, -100.0f}}}, {.logits = logits}), best);
  EXPECT_EQ(Drawn({.logit_bias = {{best, -100.0f}}}, logits).count(best), 0u);
  const TokenId forced = (best + 7) % 50;
  EXPECT_EQ(Drawn({.logit_bias = {{forced, 100.0f}}}, logits), (std::map<TokenId, int>{{forced, 3000}}));
}

// What sampling.h says, letter by letter.
std::vector<float> LiteralScores(const SamplingParams& params, const SampleInput& input) {
  std::vector<float> scores(input.logits.begin(), input.logits.end());
  for (const auto& [token, bias] : params.logit_bias) scores[token] += bias;
  for (TokenId token = 0; token < scores.size(); ++token) {
    const auto in_prompt = std::count(input.prompt.begin(), input.prompt.end(), token);
    const auto in_output = std::count(input.output.begin(), input.output.end(), token);
    float& score = scores[token];
    if (in_prompt + in_output > 0) {
      score = score > 0 ? score / params.repetition_penalty : score * params.repetition_penalty;
    }
    if (in_output > 0) {
      score -= params.presence_penalty;
      score -= params.frequency_penalty * static_cast<float>(in_output);
    }
  }
  return scores;
}

std::vector<TokenId> RandomTokens(SplitMix64& random, size_t count, size_t vocabulary) {
  std::vector<TokenId> tokens;
  for (size_t i = 0; i < count; ++i) tokens.push_back(static_cast<TokenId>(random.Below(vocabulary)));
  return tokens;
}

TEST(SamplerPenalties, AreTheLiteralFormula) {
  SplitMix64 random(9);
  Sampler sampler(Scalar());  // one for all: nothing may be left over from call to call
  for (int round = 0; round < 2000; ++round) {
    const size_t vocabulary = 2 + random.Below(30);
    const std::vector<float> logits = RandomLogits(random(), vocabulary, 2);
    const std::vector<TokenId> prompt = RandomTokens(random, random.Below(20), vocabulary);
    const std::vector<TokenId> output = RandomTokens(random, random.Below(20), vocabulary);
    SamplingParams params;
    if (random.Below(2) == 0) params.repetition_penalty = static_cast<float>(0.5 + random.Uniform());
    if (random.Below(2) == 0) params.presence_penalty = static_cast<float>(random.Uniform() * 4 - 2);
    if (random.Below(2) == 0) params.frequency_penalty = static_cast<float>(random.Uniform() * 4 - 2);
    if (random.Below(2) == 0) params.logit_bias = {{1, static_cast<float>(random.Uniform() - 0.5)}};
    const SampleInput input{.logits = logits, .prompt = prompt, .output = output, .position = random.Below(100)};
    const std::vector<float> scores = LiteralScores(params, input);
    const SampledToken drawn = sampler.Sample(params, input);
    const SampleInput plain{.logits = scores, .position = input.position};
    EXPECT_EQ(drawn.token, sampler.Sample({}, plain).token) << "round " << round;
    params.temperature = 0;
    EXPECT_EQ(sampler.Sample(params, input).token, NaiveArgmax(scores)) << "round " << round;
  }
}

TEST(SamplerPenalties, OnlyRepetitionLooksAtThePrompt) {
  const std::vector<float> logits = {2.0f, 1.9f};
  const std::vector<TokenId> zero = {0};
  EXPECT_EQ(Greedy({.presence_penalty = 1, .frequency_penalty = 1}, {.logits = logits, .prompt = zero}), 0u);
  EXPECT_EQ(Greedy({.repetition_penalty = 1.2f}, {.logits = logits, .prompt = zero}), 1u);
  EXPECT_EQ(Greedy({.presence_penalty = 1}, {.logits = logits, .output = zero}), 1u);
  const std::vector<float> negative = {-2.0f, -2.1f};
  EXPECT_EQ(Greedy({.repetition_penalty = 1.2f}, {.logits = negative, .output = zero}), 1u);
}

// --- Logits that are not numbers.

TEST(SamplerOddLogits, NanIsNeverChosenUnlessAllAre) {
  for (const float temperature : {0.0f, 1.0f}) {
    const SamplingParams params{.temperature = temperature, .repetition_penalty = 1.1f, .logprobs = 2};
    const SamplingParams cut{.temperature = temperature, .top_k = 2, .top_p = 0.9f};
    const std::vector<TokenId> seen = {0, 1};
    const std::vector<float> some = {kNan, kNan, -3, kNan, -kInfinity};
    EXPECT_EQ(SampleOnce(params, {.logits = some, .output = seen}).token, 2u);
    EXPECT_EQ(SampleOnce(cut, {.logits = some}).token, 2u);
    const std::vector<float> all = {kNan, kNan, kNan};
    const SampledToken none = SampleOnce(params, {.logits = all, .output = seen});
    EXPECT_EQ(none.token, 0u);
    EXPECT_EQ(none.logprob, -kInfinity);
    EXPECT_TRUE(none.top.empty());
    EXPECT_EQ(SampleOnce(cut, {.logits = all}).token, 0u);
    const std::vector<float> nothing = {kNan, -kInfinity, -kInfinity};
    EXPECT_EQ(SampleOnce(params, {.logits = nothing}).token, 1u);
  }
}

TEST(SamplerOddLogits, InfinityOutdoesAllAndItsWinnersShare) {
  const std::vector<float> logits = {1, kInfinity, kNan, 5, kInfinity};
  std::map<TokenId, int> drawn = Drawn({.temperature = 3}, logits);
  EXPECT_EQ(drawn.size(), 2u);
  EXPECT_NEAR(drawn[1], 1500, 150);
  EXPECT_NEAR(drawn[4], 1500, 150);
  EXPECT_EQ(Drawn({.top_k = 1}, logits), (std::map<TokenId, int>{{1, 3000}}));
  const SampledToken scored = Sampler(Scalar()).Score(logits, 4, 3);
  EXPECT_NEAR(scored.logprob, -std::log(2.0), 1e-6);
  ASSERT_EQ(scored.top.size(), 3u);
  EXPECT_EQ(scored.top[0].token, 1u);
  EXPECT_EQ(scored.top[1].token, 4u);
  EXPECT_EQ(scored.top[2], (TokenLogprob{3, -kInfinity}));
}

TEST(SamplerOddLogits, HugeAndTinyLogitsStayFinite) {
  const std::vector<float> logits = {3e38f, -3e38f, 2.9e38f};
  EXPECT_EQ(Drawn({}, logits), (std::map<TokenId, int>{{0, 3000}}));
  EXPECT_EQ(Sampler(Scalar()).Score(logits, 0, 0).logprob, 0);
}

// --- Logprobs.

TEST(SamplerLogprobs, AreThoseOfTheRawLogitsWhateverIsAsked) {
  const std::vector<float> logits = RandomLogits(6, 500, 12);
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - top);
  const SamplingParams params{.temperature = 2, .top_k = 50, .logit_bias = {{9, 50.0f}}, .seed = 3, .logprobs = 20};
  const SampledToken sampled = SampleOnce(params, {.logits = logits});
  EXPECT_EQ(sampled.token, 9u);
  EXPECT_NEAR(sampled.logprob, logits[9] - top - std::log(sum), 1e-5);
  ASSERT_EQ(sampled.top.size(), 20u);
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(sampled.top[i].token, order[i]);
    EXPECT_NEAR(sampled.top[i].logprob, logits[order[i]] - top - std::log(sum), 1e-5);
  }
}

TEST(SamplerLogprobs, NoneUnlessAskedForAndOnlyTheChosenAtZero) {
  const std::vector<float> logits = RandomLogits(7, 20);
  EXPECT_EQ(SampleOnce({}, {.logits = logits}).logprob, 0);
  const SampledToken chosen = SampleOnce({.logprobs = 0}, {.logits = logits});
  EXPECT_LT(chosen.logprob, 0);
  EXPECT_TRUE(chosen.top.empty());
}

TEST(SamplerLogprobs, TiesAmongTheBestGoToTheLowerIds) {
  const std::vector<float> logits = {1, 2, 2, 1, 2, 1};
  const SampledToken scored = Sampler(Scalar()).Score(logits, 5, 4);
  std::vector<TokenId> tokens;
  for (const TokenLogprob& entry : scored.top) tokens.push_back(entry.token);
  EXPECT_EQ(tokens, (std::vector<TokenId>{1, 2, 4, 0}));
}

// --- Instruction sets.

TEST(SamplerTables, AllGiveTheSameTokensAndBits) {
  SplitMix64 random(8);
  for (const size_t vocabulary : {1u, 5u, 16u, 17u, 1003u, 49'152u, 262'144u}) {
    const int rounds = vocabulary > 10'000 ? 6 : 60;
    for (int round = 0; round < rounds; ++round) {
      std::vector<float> logits = RandomLogits(random(), vocabulary, 5.0 * static_cast<double>(1 + random.Below(8)));
      if (random.Below(4) == 0) logits[random.Below(vocabulary)] = kNan;
      if (random.Below(4) == 0) logits[random.Below(vocabulary)] = -kInfinity;
      const std::vector<TokenId> output = RandomTokens(random, random.Below(30), vocabulary);
      SamplingParams params{.temperature = static_cast<float>(random.Uniform() * 2), .seed = random(), .logprobs = 20};
      if (random.Below(2) == 0) params.top_k = static_cast<uint32_t>(random.Below(vocabulary));
      if (random.Below(2) == 0) params.top_p = static_cast<float>(1 - random.Uniform());
      if (random.Below(3) == 0) params.min_p = static_cast<float>(random.Uniform() * 0.1);
      if (random.Below(2) == 0) params.repetition_penalty = 1.3f;
      const SampleInput input{.logits = logits, .output = output, .position = random.Below(1000)};
      const SampledToken expected = SampleOnce(params, input);
      for (const kernels::KernelTable* table : kernels::RunnableTables()) {
        const SampledToken sampled = Sampler(*table).Sample(params, input);
        EXPECT_EQ(sampled, expected) << table->isa << ", vocabulary " << vocabulary << ", round " << round;
        EXPECT_EQ(std::bit_cast<uint32_t>(sampled.logprob), std::bit_cast<uint32_t>(expected.logprob));
      }
    }
  }
}

}  // namespace
}  // namespace cachalot::exec
