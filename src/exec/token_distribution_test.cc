#include "exec/token_distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "base/random.h"

namespace cachalot::exec {
namespace {

// The same by sorting everything, in double.
struct Naive {
  std::vector<float> scores, weights;
  uint32_t best = 0;  // 0: all
  double share = 1;
  float least = 0;

  std::vector<TokenId> Kept() const {
    std::vector<TokenId> order;
    for (TokenId t = 0; t < scores.size(); ++t) {
      if (weights[t] >= 0x1p-40f) order.push_back(t);
    }
    std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) { return scores[a] > scores[b]; });
    if (best > 0 && best < order.size()) order.resize(best);
    if (share < 1) {
      double total = 0;
      for (const TokenId t : order) total += weights[t];
      double sum = 0;
      size_t kept = 0;
      while (kept < order.size() && (kept == 0 || sum < share * total)) sum += weights[order[kept++]];
      order.resize(kept);
    }
    std::erase_if(order, [&](TokenId t) { return weights[t] < least; });
    std::sort(order.begin(), order.end());
    return order;
  }

  TokenId Draw(double uniform) const {
    const std::vector<TokenId> kept = Kept();
    double total = 0;
    for (const TokenId t : kept) total += weights[t];
    double sum = 0;
    for (const TokenId t : kept) {
      sum += weights[t];
      if (sum > uniform * total) return t;
    }
    return kept.back();
  }
};

void Cut(TokenDistribution& distribution, const Naive& naive) {
  distribution.Assign(naive.scores, naive.weights);
  if (naive.best > 0) distribution.KeepBest(naive.best);
  if (naive.share < 1) distribution.KeepMass(naive.share);
  if (naive.least > 0) distribution.KeepWeight(naive.least);
}

// All tokens that can come out, found by drawing at fine steps.
std::set<TokenId> Support(TokenDistribution& distribution) {
  std::set<TokenId> support;
  for (int i = 0; i < 4096; ++i) support.insert(distribution.Draw(i / 4096.0));
  return support;
}

// Equal scores everywhere, so that only ids rank.
Naive Flat(size_t tokens) {
  return {.scores = std::vector<float>(tokens, 1.5f), .weights = std::vector<float>(tokens, 1)};
}

Naive WithWeights(std::vector<float> weights) {
  Naive naive;
  naive.weights = weights;
  for (const float w : weights) naive.scores.push_back(std::log(w));
  return naive;
}

TEST(TokenDistribution, DrawsInAscendingIdByShare) {
  const Naive naive = WithWeights({0.25f, 1.0f, 0.75f});
  TokenDistribution distribution;
  distribution.Assign(naive.scores, naive.weights);
  EXPECT_EQ(distribution.Draw(0), 0u);
  EXPECT_EQ(distribution.Draw(0.124999), 0u);
  EXPECT_EQ(distribution.Draw(0.125), 1u);
  EXPECT_EQ(distribution.Draw(0.624999), 1u);
  EXPECT_EQ(distribution.Draw(0.625), 2u);
  EXPECT_EQ(distribution.Draw(1 - 0x1p-53), 2u);
}

TEST(TokenDistribution, TiesAtTheCutGoToTheLowerIds) {
  TokenDistribution distribution;
  for (const uint32_t best : {1u, 2u, 7u, 100u}) {
    Naive naive = Flat(100);
    naive.best = best;
    Cut(distribution, naive);
    const std::set<TokenId> support = Support(distribution);
    EXPECT_EQ(support.size(), best);
    EXPECT_EQ(*support.rbegin(), best - 1);
  }
  Naive naive = Flat(100);
  naive.share = 0.095;  // nine tokens are too few
  Cut(distribution, naive);
  EXPECT_EQ(*Support(distribution).rbegin(), 9u);
  naive.share = 0.5;  // 50 are exactly enough
  Cut(distribution, naive);
  EXPECT_EQ(*Support(distribution).rbegin(), 49u);
  naive.best = 10;
  naive.share = 0.25;  // of the ten
  Cut(distribution, naive);
  EXPECT_EQ(*Support(distribution).rbegin(), 2u);
}

TEST(TokenDistribution, KeepBestStopsExactlyAtABucketsEnd) {
  // Scores in three different buckets: the cut falls between them and inside them.
  Naive naive = WithWeights({1, 1, 0.25f, 0.25f, 0.25f, 0.01f});
  for (uint32_t best = 1; best <= 7; ++best) {
    naive.best = best;
    TokenDistribution distribution;
    Cut(distribution, naive);
    EXPECT_EQ(Support(distribution).size(), std::min(best, 6u));
  }
}

TEST(TokenDistribution, KeepMassKeepsOneAtLeastAndAllAtMost) {
  TokenDistribution distribution;
  Naive naive = WithWeights({0.5f, 1.0f, 0.5f});
  naive.share = 1e-9;
  Cut(distribution, naive);
  EXPECT_EQ(Support(distribution), std::set<TokenId>{1});
  naive.share = 0.5;
  Cut(distribution, naive);
  EXPECT_EQ(Support(distribution), std::set<TokenId>{1});
  naive.share = 0.50001;
  Cut(distribution, naive);
  EXPECT_EQ(Support(distribution), (std::set<TokenId>{0, 1}));
  naive.share = 1 - 1e-9;
  Cut(distribution, naive);
  EXPECT_EQ(Support(distribution).size(), 3u);
}

TEST(TokenDistribution, KeepWeightComparesWithTheBest) {
  TokenDistribution distribution;
  Naive naive = WithWeights({0.1f, 1.0f, 0.5f});
  naive.least = 0.5f;
  Cut(distribution, naive);
  EXPECT_EQ(Support(distribution), (std::set<TokenId>{1, 2}));
  naive.least = 1.0f;
  Cut(distribution, naive);
  EXPECT_EQ(Support(distribution), std::set<TokenId>{1});
}

TEST(TokenDistribution, NothingWithoutWeightIsEverKept) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  TokenDistribution distribution;
  Naive naive{.scores = {kNan, 3, 2, -1e30f, 5}, .weights = {kNan, 1, 0.5f, 0x1p-41f, 0}};
  for (const uint32_t best : {0u, 1u, 2u, 3u, 5u}) {
    naive.best = best;
    naive.share = best == 5 ? 0.999999 : 1;
    Cut(distribution, naive);
    const std::set<TokenId> support = Support(distribution);
    EXPECT_EQ(support, best == 1 ? std::set<TokenId>{1} : (std::set<TokenId>{1, 2}));
  }
}

TEST(TokenDistribution, AgreesWithSortingOnRandomTokens) {
  SplitMix64 random(3);
  TokenDistribution distribution;
  for (int round = 0; round < 3000; ++round) {
    const size_t tokens = 1 + random.Below(round % 10 == 0 ? 3000 : 60);
    const double spread = std::pow(10.0, random.Uniform() * 4 - 2);
    const bool ties = random.Below(2) == 0;
    Naive naive;
    float top = -std::numeric_limits<float>::infinity();
    for (size_t t = 0; t < tokens; ++t) {
      const double score = (random.Uniform() - 0.5) * spread;
      naive.scores.push_back(static_cast<float>(ties ? std::round(score * 4) / 4 : score));
      top = std::max(top, naive.scores.back());
    }
    for (const float score : naive.scores) naive.weights.push_back(std::exp(score - top));
    if (random.Below(2) == 0) naive.best = static_cast<uint32_t>(1 + random.Below(tokens + 3));
    if (random.Below(2) == 0) naive.share = random.Uniform();
    if (random.Below(3) == 0) naive.least = static_cast<float>(random.Uniform());
    Cut(distribution, naive);
    for (int draw = 0; draw < 20; ++draw) {
      const double uniform = random.Uniform();
      ASSERT_EQ(distribution.Draw(uniform), naive.Draw(uniform))
          << "round " << round << ": " << tokens << " tokens, best " << naive.best << ", share " << naive.share
          << ", least " << naive.least << ", spread " << spread;
    }
  }
}

}  // namespace
}  // namespace cachalot::exec
