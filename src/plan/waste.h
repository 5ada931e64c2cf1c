// Waste: what different ways to allocate KV set aside for sequences that are shorter than they could be.
// Threads:   pure functions.
// Ownership: none.
// Invariant: allocated is at least live.
// Cost:      none.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/sizing.h"

namespace cachalot::plan {

struct Allocation {
  std::string_view way;
  uint64_t allocated_bytes = 0;  // for one sequence
  double waste = 0;              // share of it that holds nothing
  std::string_view note;
};

// What is lost between allocations of different sizes in a heap without pages, as a share of what is allocated: the
// usual 10 GiB become 12.
inline constexpr double kHeapFragmentation = 0.2;
uint64_t FragmentedBytes(uint64_t bytes);

// For a sequence that reaches `tokens`, where it might have reached `most_tokens`.
std::vector<Allocation> CompareAllocations(const KvSizes& sizes, uint64_t tokens, uint64_t most_tokens);

}  // namespace cachalot::plan
