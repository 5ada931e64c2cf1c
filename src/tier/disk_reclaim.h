// Which segment to give up for room, as pure functions of how its blocks are used.
// Threads:   pure.
// Ownership: none.
// Invariant: a segment without a live block goes before any that has one; equal ones go oldest first.
// Cost:      linear in the segments.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace cachalot::tier {

// How much a live block is used. Time is counted in bytes appended to the tier, so that no clock can jump.
struct BlockUse {
  uint64_t bytes = 0;
  uint64_t last_use = 0;  // when it was written or last read
  bool read = false;      // since it was written
};

// Its bytes, twice if it was read, less the longer nobody used it: half after `turnover_bytes` were appended.
double ValueOf(const BlockUse& use, uint64_t now, uint64_t turnover_bytes);

struct SegmentView {
  uint64_t segment = 0;
  uint64_t occupied_bytes = 0;
  double value = 0;  // sum over its live blocks
};

// The one of least value per byte that it occupies; `segments` ascend. None when there are none.
std::optional<uint64_t> LeastValuable(std::span<const SegmentView> segments);

}  // namespace cachalot::tier
