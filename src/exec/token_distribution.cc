#include "exec/token_distribution.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "base/check.h"

namespace cachalot::exec {
namespace {

constexpr float kOne = 0x1p40f;
constexpr TokenId kChunk = 1024;
constexpr size_t kMostTokens = size_t{1} << 23;  // times 2^40 stays inside 64 bits

// How far the list of heavy tokens reaches, tried one after the other; the last is everything.
constexpr float kListFrom[] = {0x1p-5f, 0x1p-9f, 0x1p-12f, 0x1p-16f, 0x1p-24f, 0};
// Weights ascend with scores only up to the rounding of exp; this covers it.
constexpr float kSlack = 0.999f;

// Ascends as the score does; -0 and 0 are one.
uint32_t OrderedBits(float score) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);
  return bits ^ ((0u - (bits >> 31)) | 0x80000000);  // no branch: signs of logits are hard to foresee
}

TokenId TokenOf(uint64_t rank) { return ~static_cast<uint32_t>(rank); }

// floor(uniform * total), exactly: uniform is a multiple of 2^-53.
uint64_t PointIn(uint64_t total, double uniform) {
  const auto fraction = static_cast<uint64_t>(uniform * 0x1p53);
  return static_cast<uint64_t>((static_cast<unsigned __int128>(fraction) * total) >> 53);
}

}  // namespace

void TokenDistribution::Assign(std::span<const float> scores, std::span<const float> weights) {
  CACHALOT_CHECK(scores.size() == weights.size() && scores.size() <= kMostTokens);
  scores_ = scores;
  weights_ = weights;
  listed_ = false;
  list_.reserve(scores.size());
  ranks_.reserve(scores.size());
  chunks_.reserve(scores.size() / kChunk + 1);
}

uint64_t TokenDistribution::MassOf(TokenId token) const {
  const float weight = weights_[token];
  return weight > 0 ? static_cast<uint64_t>(static_cast<int64_t>(weight * kOne)) : 0;  // a NaN gives 0
}

uint64_t TokenDistribution::RankOf(TokenId token) const {
  return (uint64_t{OrderedBits(scores_[token])} << 32) | static_cast<uint32_t>(~token);
}

uint64_t TokenDistribution::MassBetween(TokenId begin, TokenId end) const {
  uint64_t mass = 0;
  for (TokenId token = begin; token < end; ++token) mass += MassOf(token);
  return mass;
}

uint64_t TokenDistribution::MassOfList() const {
  uint64_t mass = 0;
  for (const TokenId token : list_) mass += MassOf(token);
  return mass;
}

float TokenDistribution::ListFrom(float weight) {
  list_.clear();
  listed_ = true;
  const float least = std::max(weight * kSlack, 1 / kOne);
  float lowest_score = std::numeric_limits<float>::infinity();
  for (TokenId token = 0; token < weights_.size(); ++token) {
    if (!(weights_[token] >= least)) continue;
    list_.push_back(token);
    if (weights_[token] >= weight) lowest_score = std::min(lowest_score, scores_[token]);
  }
  std::erase_if(list_, [&](TokenId token) { return scores_[token] < lowest_score; });
  return lowest_score;
}

uint64_t TokenDistribution::ListUntil(uint64_t wanted, Measure measure) {
  uint64_t surely_kept = 0;
  std::optional<float> surely_kept_from;
  for (const float weight : kListFrom) {
    const float lowest_score = ListFrom(weight);
    const uint64_t measured = measure == Measure::kTokens ? list_.size() : MassOfList();
    if (measured >= wanted || weight == 0) break;
    surely_kept = measured;
    surely_kept_from = lowest_score;
  }
  ranks_.clear();
  for (const TokenId token : list_) {
    if (!surely_kept_from || scores_[token] < *surely_kept_from) ranks_.push_back(RankOf(token));
  }
  return wanted - surely_kept;
}

void TokenDistribution::CutBelow(uint64_t rank) {
  std::erase_if(list_, [&](TokenId token) { return RankOf(token) < rank; });
}

void TokenDistribution::KeepBest(uint32_t count) {
  CACHALOT_CHECK(count > 0);
  const uint64_t wanted = ListUntil(count, Measure::kTokens);
  if (ranks_.size() <= wanted) return;
  std::nth_element(ranks_.begin(), ranks_.begin() + static_cast<ptrdiff_t>(wanted - 1), ranks_.end(), std::greater<>());
  CutBelow(ranks_[wanted - 1]);
}

void TokenDistribution::KeepMass(double share) {
  const uint64_t total = listed_ ? MassOfList() : MassBetween(0, static_cast<TokenId>(scores_.size()));
  const double wanted = std::ceil(share * static_cast<double>(total));
  uint64_t target = wanted >= 1 ? static_cast<uint64_t>(wanted) : 1;
  if (target >= total) return;
  if (listed_) {
    ranks_.clear();
    for (const TokenId token : list_) ranks_.push_back(RankOf(token));
  } else {
    target = ListUntil(target, Measure::kMass);
  }
  // Halve what may hold the last token that is needed: the exact sum of the better half says which half it is in.
  std::span<uint64_t> rest = ranks_;
  while (rest.size() > 1) {
    const size_t half = rest.size() / 2;
    std::nth_element(rest.begin(), rest.begin() + static_cast<ptrdiff_t>(half), rest.end(), std::greater<>());
    uint64_t mass = 0;
    for (const uint64_t rank : rest.first(half)) mass += MassOf(TokenOf(rank));
    if (mass >= target) {
      rest = rest.first(half);
    } else {
      target -= mass;
      rest = rest.subspan(half);
    }
  }
  CutBelow(rest[0]);
}

void TokenDistribution::KeepWeight(float least) {
  if (!listed_) ListFrom(least);
  std::erase_if(list_, [&](TokenId token) { return weights_[token] < least; });
}

TokenId TokenDistribution::Draw(double uniform) {
  if (!listed_) return DrawFromAll(uniform);
  const uint64_t total = MassOfList();
  CACHALOT_CHECK(total > 0);
  uint64_t left = PointIn(total, uniform);
  for (size_t i = 0;; ++i) {
    const uint64_t mass = MassOf(list_[i]);
    if (left < mass) return list_[i];
    left -= mass;
  }
}

TokenId TokenDistribution::DrawFromAll(double uniform) {
  const auto tokens = static_cast<TokenId>(scores_.size());
  uint64_t total = 0;
  chunks_.clear();
  for (TokenId begin = 0; begin < tokens; begin += kChunk) {
    chunks_.push_back(MassBetween(begin, std::min(begin + kChunk, tokens)));
    total += chunks_.back();
  }
  CACHALOT_CHECK(total > 0);
  uint64_t left = PointIn(total, uniform);
  TokenId token = 0;
  for (size_t chunk = 0; left >= chunks_[chunk]; ++chunk, token += kChunk) left -= chunks_[chunk];
  for (; left >= MassOf(token); ++token) left -= MassOf(token);
  return token;
}

}  // namespace cachalot::exec
