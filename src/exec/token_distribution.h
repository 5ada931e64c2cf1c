// TokenDistribution cuts weighted tokens down to the best ones and draws one of those left.
// Threads:   owned by one thread; its result depends on its arguments only.
// Ownership: borrows scores and weights from Assign until the next.
// Invariant: sums are exact (weights are fixed-point integers of 2^-40), so no result depends on the order in which
//            anything is added; what is kept is always a run of the best tokens: higher score first, then lower id.
// Cost:      a few passes over the tokens and, for a cut, selecting inside one of 4,096 score buckets: never a sort,
//            and no allocation once a vocabulary of that size was seen.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace cachalot::exec {

class TokenDistribution {
 public:
  // Weights are in [0, 1]; those below 2^-40, negative or NaN count as 0 and such a token is never kept.
  // Requires equal lengths of at most 2^23.
  void Assign(std::span<const float> scores, std::span<const float> weights);

  // The cuts are made in this order, each at most once.
  //
  // Keeps the `count` best tokens. Requires count > 0.
  void KeepBest(uint32_t count);
  // Keeps the fewest of the best whose weights add up to at least `share` of what is kept now; one at least.
  void KeepMass(double share);
  // Keeps those of at least this weight. Requires that some token is.
  void KeepWeight(float least);

  // The token at `uniform`, in [0, 1), of the kept weight, tokens taken in ascending id. Requires that any is kept.
  TokenId Draw(double uniform);

 private:
  static constexpr size_t kBuckets = 4096;  // by sign, exponent and three bits of mantissa of the score
  struct Bucket {
    uint32_t tokens;
    uint64_t mass;
  };

  uint64_t MassOf(TokenId token) const;
  uint64_t RankOf(TokenId token) const;
  uint64_t KeptMassOf(TokenId token) const;
  uint64_t KeptMassOf(TokenId begin, TokenId end) const;
  void CountBuckets();
  // The ranks of the kept tokens of one bucket, in candidates_.
  void Collect(size_t bucket);

  std::span<const float> scores_;
  std::span<const float> weights_;
  uint64_t last_rank_ = 0;  // ranks from here up are kept
  float least_weight_ = 0;
  uint64_t kept_mass_ = 0;  // valid once counted_
  bool counted_ = false;    // whether buckets_ are of these tokens
  std::array<Bucket, kBuckets> buckets_;
  std::vector<uint64_t> candidates_;
  std::vector<uint64_t> chunk_masses_;  // scratch of Draw
};

}  // namespace cachalot::exec
