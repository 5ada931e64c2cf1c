// Residency measures how long blocks stay, how long they had not been used when they were evicted, and after how long
// they are used again.
// Threads:   owned by the engine thread.
// Ownership: knows blocks by the numbers of their nodes.
// Invariant: a block that is replaced, not evicted, is counted nowhere.
// Cost:      O(1) per call; 16 bytes per node.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/age_counts.h"
#include "base/clock.h"

namespace cachalot::kv {

class Residency {
 public:
  using Number = uint32_t;  // dense, used again

  void OnSealed(Number block, Nanos now) {
    if (block >= times_.size()) times_.resize(std::max<size_t>(block + 1, 2 * times_.size()));
    times_[block] = {now, now};
  }
  // A request begins to use it.
  void OnUsed(Number block, Nanos now) {
    counts_.reuse_gaps.Add(ToSeconds(now - times_[block].used));
    times_[block].used = now;
  }
  // A request that used it ends.
  void OnLeft(Number block, Nanos now) { times_[block].used = now; }
  void OnEvicted(Number block, Nanos now) {
    counts_.lifetimes.Add(ToSeconds(now - times_[block].sealed));
    counts_.idle_times.Add(ToSeconds(now - times_[block].used));
  }

  const ResidencyCounts& counts() const { return counts_; }

 private:
  struct Times {
    Nanos sealed{0};
    Nanos used{0};
  };
  std::vector<Times> times_;
  ResidencyCounts counts_;
};

}  // namespace cachalot::kv
