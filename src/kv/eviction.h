// EvictionPolicy ranks what may leave the pool; the prefix index says what is there, what was used and what may go.
// Threads:   owned by the engine thread.
// Ownership: none; entries are dense numbers of the index's own.
// Invariant: deterministic: equal calls give equal victims; only candidates are chosen; ties go by the order of events.
// Cost:      O(1) or O(log entries) per call, never a scan.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace cachalot::kv {

using EntryId = uint32_t;

// What the index knows of an entry.
struct EntryInfo {
  uint32_t slots = 0;            // that its eviction frees
  uint64_t position = 0;         // tokens before its end
  double recompute_seconds = 0;  // what it would take to compute its tokens again; 0: not known
  uint32_t turn = 0;             // of its conversation: how many requests came this way before
  int32_t priority = 0;          // higher stays longer
  std::optional<Nanos> expires;  // from then on it goes before all others
  bool has_lower_copy = false;   // in a lower tier
};

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  // A new entry, not a candidate.
  virtual void Insert(EntryId entry, const EntryInfo& info, Nanos now) = 0;
  // A request found the entry.
  virtual void Touch(EntryId entry, Nanos now) = 0;
  virtual void BecomeCandidate(EntryId entry) = 0;
  virtual void NotCandidate(EntryId entry) = 0;
  // Forgets it; candidate or not.
  virtual void Remove(EntryId entry) = 0;
  // The candidate to go next; it stays one until Remove. None: there is no candidate.
  virtual std::optional<EntryId> Victim(Nanos now) = 0;
};

}  // namespace cachalot::kv
