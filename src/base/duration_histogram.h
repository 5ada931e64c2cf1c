// DurationHistogram keeps a distribution of durations in bounded memory.
// Threads:   one thread.
// Ownership: owns its counters.
// Invariant: a quantile is within 0.8 % of a value that was added, and within [min, max]; counters never shrink.
// Cost:      Add is O(1); 58 KB each.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace cachalot {

class DurationHistogram {
 public:
  DurationHistogram();

  // Negative durations count as zero.
  void Add(Nanos value);

  uint64_t count() const { return count_; }
  // All are zero while nothing was added.
  Nanos min() const { return min_; }
  Nanos max() const { return max_; }
  double MeanSeconds() const;
  // The least value that at least `share` (0 to 1) of all are not above.
  Nanos Quantile(double share) const;

 private:
  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  double sum_seconds_ = 0;
  Nanos min_{0}, max_{0};
};

}  // namespace cachalot
