#include "exec/token_distribution.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "base/check.h"

namespace cachalot::exec {
namespace {

constexpr float kOne = 0x1p40f;
constexpr TokenId kChunk = 1024;
constexpr size_t kMostTokens = size_t{1} << 23;  // times 2^40 stays inside 64 bits

// Ascends as the score does; -0 and 0 are one.
uint32_t OrderedBits(float score) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);
  return bits ^ ((0u - (bits >> 31)) | 0x80000000);  // no branch: signs of logits are hard to foresee
}

size_t BucketOf(uint64_t rank) { return rank >> 52; }

TokenId TokenOf(uint64_t rank) { return ~static_cast<uint32_t>(rank); }

}  // namespace

void TokenDistribution::Assign(std::span<const float> scores, std::span<const float> weights) {
  CACHALOT_CHECK(scores.size() == weights.size() && scores.size() <= kMostTokens);
  scores_ = scores;
  weights_ = weights;
  last_rank_ = 0;
  least_weight_ = 0;
  counted_ = false;
}

uint64_t TokenDistribution::MassOf(TokenId token) const {
  const float weight = weights_[token];
  return weight > 0 ? static_cast<uint64_t>(static_cast<int64_t>(weight * kOne)) : 0;  // a NaN gives 0
}

uint64_t TokenDistribution::RankOf(TokenId token) const {
  return (uint64_t{OrderedBits(scores_[token])} << 32) | static_cast<uint32_t>(~token);
}

uint64_t TokenDistribution::KeptMassOf(TokenId token) const {
  return weights_[token] >= least_weight_ && RankOf(token) >= last_rank_ ? MassOf(token) : 0;
}

uint64_t TokenDistribution::KeptMassOf(TokenId begin, TokenId end) const {
  uint64_t mass = 0;
  if (last_rank_ == 0 && least_weight_ == 0) {
    for (TokenId token = begin; token < end; ++token) mass += MassOf(token);
  } else {
    for (TokenId token = begin; token < end; ++token) mass += KeptMassOf(token);
  }
  return mass;
}

void TokenDistribution::CountBuckets() {
  if (counted_) return;
  buckets_.fill({});
  kept_mass_ = 0;
  for (TokenId token = 0; token < scores_.size(); ++token) {
    const uint64_t mass = MassOf(token);
    if (mass == 0) continue;
    Bucket& bucket = buckets_[BucketOf(RankOf(token))];
    ++bucket.tokens;
    bucket.mass += mass;
    kept_mass_ += mass;
  }
  counted_ = true;
}

void TokenDistribution::Collect(size_t bucket) {
  candidates_.clear();
  for (TokenId token = 0; token < scores_.size(); ++token) {
    const uint64_t rank = RankOf(token);
    if (BucketOf(rank) == bucket && rank >= last_rank_ && MassOf(token) > 0) candidates_.push_back(rank);
  }
}

void TokenDistribution::KeepBest(uint32_t count) {
  CACHALOT_CHECK(count > 0);
  CountBuckets();
  uint64_t mass = 0;
  size_t b = kBuckets - 1;
  for (; b > 0 && buckets_[b].tokens < count; --b) {
    count -= buckets_[b].tokens;
    mass += buckets_[b].mass;
  }
  if (buckets_[b].tokens < count) return;  // there are no more tokens than that
  Collect(b);
  std::nth_element(candidates_.begin(), candidates_.begin() + (count - 1), candidates_.end(), std::greater<>());
  last_rank_ = candidates_[count - 1];
  for (uint32_t i = 0; i < count; ++i) mass += MassOf(TokenOf(candidates_[i]));
  kept_mass_ = mass;
}

void TokenDistribution::KeepMass(double share) {
  CountBuckets();
  const double wanted = std::ceil(share * static_cast<double>(kept_mass_));
  uint64_t target = wanted >= 1 ? static_cast<uint64_t>(wanted) : 1;
  if (target >= kept_mass_) return;
  size_t b = kBuckets - 1;
  for (; b > BucketOf(last_rank_) && buckets_[b].mass < target; --b) target -= buckets_[b].mass;
  Collect(b);
  // Halve what may hold the last token that is needed: the exact sum of the better half says which half it is in.
  std::span<uint64_t> rest = candidates_;
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
  last_rank_ = rest[0];
}

void TokenDistribution::KeepWeight(float least) { least_weight_ = least; }

TokenId TokenDistribution::Draw(double uniform) {
  const auto tokens = static_cast<TokenId>(scores_.size());
  uint64_t total = 0;
  chunk_masses_.clear();
  for (TokenId begin = 0; begin < tokens; begin += kChunk) {
    chunk_masses_.push_back(KeptMassOf(begin, std::min(begin + kChunk, tokens)));
    total += chunk_masses_.back();
  }
  CACHALOT_CHECK(total > 0);
  // floor(uniform * total), exactly: uniform is a multiple of 2^-53.
  const auto fraction = static_cast<uint64_t>(uniform * 0x1p53);
  uint64_t left = static_cast<uint64_t>((static_cast<unsigned __int128>(fraction) * total) >> 53);
  TokenId token = 0;
  for (size_t chunk = 0; left >= chunk_masses_[chunk]; ++chunk, token += kChunk) left -= chunk_masses_[chunk];
  for (;; ++token) {
    const uint64_t mass = KeptMassOf(token);
    if (left < mass) return token;
    left -= mass;
  }
}

}  // namespace cachalot::exec
