// WayUp is what the engine has on its way up from lower tiers beside the loads of requests: whose turn it is, what
// comes before it is asked for, and what was decided about how requests get their KV.
// Threads:   engine thread.
// Ownership: owns the prefetches.
// Invariant: numbers ascend by one.
// Cost:      none.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "engine/engine_parts.h"
#include "engine/prefetches.h"
#include "sched/promotion.h"

namespace cachalot::engine {

struct WayUp {
  // At most so much comes up at a time.
  explicit WayUp(uint64_t promotion_bytes) : promotion(promotion_bytes) {}

  sched::Promotion promotion;
  uint64_t last_promotion = 0;
  std::vector<Prefetch> prefetches;
  std::vector<PrefetchEnd> ended_prefetches;
  uint64_t last_prefetch = 0;
  std::deque<ResumeRecord> decisions;  // the last ones
  uint64_t last_decision = 0;
  std::vector<Decided> decided;  // in the step before
};

}  // namespace cachalot::engine
