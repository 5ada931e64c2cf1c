// TokenDistribution cuts weighted tokens down to the best ones and draws one of those left.
// Threads:   owned by one thread; its result depends on its arguments only.
// Ownership: borrows scores and weights from Assign until the next.
// Invariant: sums are exact (weights are fixed-point integers of 2^-40), so no result depends on the order in which
//            anything is added; what is kept is always a run of the best tokens: higher score first, then lower id.
// Cost:      a few passes over the tokens; a cut selects inside a short list of heavy tokens, which is widened where it
//            is too short: never a sort, and no allocation once a vocabulary of that size was seen.
#pragma once

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
  uint64_t MassOf(TokenId token) const;
  uint64_t RankOf(TokenId token) const;
  uint64_t MassBetween(TokenId begin, TokenId end) const;
  uint64_t MassOfList() const;
  // Lists the best tokens: all of at least this weight and a few more; 0 lists all that have any mass. Returns the
  // lowest score of the list.
  float ListFrom(float weight);
  // Lists the best tokens until they measure `wanted`, or all. ranks_ gets those among which a cut at `wanted` falls;
  // returns how much of `wanted` these have to make up.
  enum class Measure : uint8_t { kTokens, kMass };
  uint64_t ListUntil(uint64_t wanted, Measure measure);
  // Drops the listed tokens that rank below.
  void CutBelow(uint64_t rank);
  TokenId DrawFromAll(double uniform);

  std::span<const float> scores_;
  std::span<const float> weights_;
  bool listed_ = false;           // whether list_ is what is kept; else all tokens are
  std::vector<TokenId> list_;     // ascending
  std::vector<uint64_t> ranks_;   // scratch of the cuts
  std::vector<uint64_t> chunks_;  // scratch of DrawFromAll
};

}  // namespace cachalot::exec
