// ReturnRates tells how soon a conversation is likely to be taken up again, learnt from those that were.
// Threads:   plain values and pure functions.
// Ownership: none.
// Invariant: the rate of a visit is a base rate by idle time multiplied by one factor per trait (proportional hazards);
//            factors average to 1.
// Cost:      FitReturns is linear in the records, Density in nothing.
//
// That the chance of reuse depends on the turn and on idle time, and that it can be fitted online, is the observation
// of "KVCache Cache in the Wild" (USENIX ATC 2025); a rate that rises before it falls is ranked by the best ratio of
// expected hits to time held over all horizons, as in LHD (NSDI 2018) and Gittins' index.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/clock.h"

namespace cachalot::kv {

inline constexpr int kIdleBins = 24;  // bin 0 ends at 4 s, each next at sqrt 2 times that; the last never ends
inline constexpr int kLevels = 32;    // half octaves of rate
inline constexpr int kTraits = 3;
inline constexpr int kTraitValues = 24;

// First idle time of a bin, in seconds.
double IdleBinBegin(int bin);
int IdleBinOf(double idle_seconds);

// What is known of a visit when it begins, in coarse values.
using VisitTraits = std::array<uint8_t, kTraits>;

// A visit that continues the `turns`-th one of its conversation (0: the first), `gap` after it.
VisitTraits TurnTraits(uint32_t turns, Nanos gap, uint64_t fresh_tokens);
// A prefix at which the `branches`-th request left all known ways, `gap` after it was last used. Prefixes are fitted
// apart from visits.
VisitTraits SharedTraits(uint32_t branches, Nanos gap);
// The unfilled last block of a visit with these traits.
VisitTraits ShortBlockTraits(VisitTraits visit);

// One visit's fate so far.
struct ReturnRecord {
  VisitTraits traits{};
  double idle_seconds = 0;  // until it came back, was lost from sight, or now
  bool returned = false;
};

class ReturnRates {
 public:
  ReturnRates();
  // Multiple of the average visit's rate.
  double Score(const VisitTraits& traits) const;
  // Highest expected returns per second over all horizons, for a visit of that level idle for that bin's middle.
  double Worth(int level, int bin) const { return worth_[static_cast<size_t>(level)][static_cast<size_t>(bin)]; }
  static int LevelOf(double score);

 private:
  friend ReturnRates FitReturns(std::span<const ReturnRecord> records, const ReturnRates& before);
  void FitBase(std::span<const ReturnRecord> records, std::span<const double> scores);
  void FitTrait(size_t trait, std::span<const ReturnRecord> records, std::span<double> scores);
  void Tabulate();
  double ExpectedReturns(double idle_seconds) const;

  std::array<std::array<double, kTraitValues>, kTraits> factors_{};
  std::array<double, kIdleBins> base_{};             // returns per second of a visit of score 1
  std::array<double, kIdleBins> expected_before_{};  // expected returns before a bin begins
  std::array<std::array<double, kIdleBins>, kLevels> worth_{};
};

// One round of fitting, beginning at `before`: base rates, then each trait's factors in turn.
ReturnRates FitReturns(std::span<const ReturnRecord> records, const ReturnRates& before);

}  // namespace cachalot::kv
