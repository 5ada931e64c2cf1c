// WayUp is what the engine has on its way up from lower tiers beside the loads of requests: whose turn it is, what
// comes before it is asked for, and what was decided about how requests get their KV.
// Threads:   engine thread.
// Ownership: owns the prefetches.
// Invariant: numbers ascend by one.
// Cost:      none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/decisions.h"
#include "engine/expected_blocks.h"
#include "engine/prefetches.h"
#include "sched/promotion.h"

namespace cachalot::engine {

struct WayUp {
  // At most so much comes up at a time.
  explicit WayUp(uint64_t promotion_bytes) : promotion(promotion_bytes) {}

  sched::Promotion promotion;
  uint64_t last_promotion = 0;
  // The one that loads into the sequence, if any.
  Prefetch* PrefetchInto(SequenceId sequence) {
    const auto found = std::ranges::find_if(
        prefetches, [&](const Prefetch& p) { return p.loading != nullptr && p.sequence == sequence; });
    return found == prefetches.end() ? nullptr : &*found;
  }
  // Slots that prefetches hold or may still take, and that are free once they give way.
  uint64_t prefetch_slots() const {
    uint64_t slots = 0;
    for (const Prefetch& prefetch : prefetches) slots += prefetch.loading == nullptr ? 0 : prefetch.own_slots;
    return slots;
  }

  ExpectedBlocks expected;  // by requests that wait
  std::vector<Prefetch> prefetches;
  std::vector<PrefetchEnd> ended_prefetches;
  uint64_t last_prefetch = 0;
  Latest<ResumeRecord> decisions;
  std::vector<Decided> decided;
};

}  // namespace cachalot::engine
