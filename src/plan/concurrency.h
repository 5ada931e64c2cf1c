// Concurrency: what a memory sized for one number of sequences does when another number comes.
// Threads:   pure functions.
// Ownership: none.
// Invariant: none.
// Cost:      sorting the samples.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace cachalot::plan {

// How many sequences are under way: on average, for half of the time, for all but a hundredth of it, at most.
struct ConcurrencyProfile {
  uint64_t mean = 0;
  uint64_t p50 = 0;
  uint64_t p99 = 0;
  uint64_t peak = 0;
  std::vector<uint64_t> samples;  // ascending; empty where only the four numbers are known
};

// One number per line (blank lines and lines that begin with # are skipped), sampled at equal intervals. kInvalid,
// naming the line.
Result<ConcurrencyProfile> ReadConcurrency(std::string_view text, const std::string& name);
// kInvalid unless p50 <= p99 <= peak and mean <= peak, all above 0.
Status CheckConcurrency(const ConcurrencyProfile& profile);

// Share of the samples in which more than `held` sequences are under way.
double ShareAbove(const ConcurrencyProfile& profile, uint64_t held);

}  // namespace cachalot::plan
