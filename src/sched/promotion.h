// Promotion says whose KV may come up into the hot pool now, so that many who return at once do not evict each other;
// LookAheadOf how far into the queue it pays to fetch KV.
// Threads:   owned by the engine thread.
// Ownership: none.
// Invariant: deterministic. What is coming up, or has come up and is not yet taken by its request, fits the limit, but
//            that one alone may exceed it. Who has waited longest is next, and nobody passes it.
// Cost:      Enter and Leave are O(log requests), Admit that for each one admitted; LookAheadOf is linear.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace cachalot::sched {

// What comes up for one request, or ahead of it.
using PromotionId = Id<struct PromotionTag, uint64_t>;

class Promotion {
 public:
  explicit Promotion(uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // So many bytes wait to come up, for one who has waited since then. Requires that it is not known.
  void Enter(PromotionId id, uint64_t bytes, Nanos since);
  // Those that begin now, in order.
  std::vector<PromotionId> Admit();
  // It runs and holds its KV itself, or was given up. Whether it was known.
  bool Leave(PromotionId id);
  // It was admitted, and has not left.
  bool InFlight(PromotionId id) const;

  uint64_t limit_bytes() const { return limit_bytes_; }
  uint64_t in_flight_bytes() const { return in_flight_bytes_; }
  uint64_t in_flight() const { return entries_.size() - waiting_.size(); }
  uint64_t waiting() const { return waiting_.size(); }

 private:
  struct Entry {
    uint64_t bytes = 0;
    Nanos since{0};
    bool in_flight = false;
  };

  const uint64_t limit_bytes_;
  std::map<PromotionId, Entry> entries_;
  std::set<std::pair<Nanos, PromotionId>> waiting_;
  uint64_t in_flight_bytes_ = 0;
};

// Of the requests that wait, in the order in which they will run, the first so many fit a tier together: their KV may
// come up into it before their turn, or is kept there until then (CachedAttention's two windows, Gao et al., 2024).
uint64_t LookAheadOf(std::span<const uint64_t> queued_bytes, uint64_t tier_bytes);

}  // namespace cachalot::sched
