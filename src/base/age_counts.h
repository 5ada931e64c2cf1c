// AgeCounts is a histogram of times from seconds to days.
// Threads:   plain data.
// Ownership: none.
// Invariant: a time is counted in the first bucket whose bound it does not exceed, or in the last, which has none.
// Cost:      O(log buckets).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace cachalot {

inline constexpr std::array kAgeBounds = {.01,  .1,   1.,   2.,    5.,    10.,    30.,    60.,
                                          120., 300., 600., 1800., 3600., 10800., 43200., 86400.};

struct AgeCounts {
  std::array<uint64_t, kAgeBounds.size() + 1> counts{};
  double seconds = 0;  // their sum

  void Add(double age) {
    ++counts[static_cast<size_t>(std::ranges::lower_bound(kAgeBounds, age) - kAgeBounds.begin())];
    seconds += age;
  }
};

// Of the blocks of the KV pool.
struct ResidencyCounts {
  AgeCounts lifetimes;   // of those that were evicted
  AgeCounts idle_times;  // of them, since their last use
  AgeCounts reuse_gaps;  // between two uses
};

}  // namespace cachalot
