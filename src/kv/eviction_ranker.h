// Ranker is the order of one policy among candidates; RankedPolicy puts priority, deadlines and lower copies above it.
// Threads:   owned by the engine thread.
// Ownership: reads the entries, which RankedPolicy owns.
// Invariant: Best(rung) is among the entries added to that rung and not removed since.
// Cost:      O(1) or O(log candidates) per call, amortised, counted by steps().
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "kv/eviction.h"

namespace cachalot::kv {

// Where a candidate stands above all policies, lowest goes first: expired, then priority by priority with those first
// that a lower tier holds too.
using Rung = uint8_t;
inline constexpr Rung kRungs = 4;
inline constexpr Rung kNoRung = kRungs;

struct Entry {
  EntryInfo info;
  std::array<Nanos, 3> held_until{};  // by priority: the latest deadline that was wished with it
  VisitId visit = kNoVisit;           // that it counts as part of
  Nanos touched_at{0};
  uint64_t inserted = 0;  // number of the call that made it resident
  uint64_t touched = 0;   // number of the call that used it last, insertion included
  uint32_t touches = 0;   // since it became resident, insertion included
  Rung rung = kNoRung;    // of a candidate
  bool known = false;     // from Insert() to Remove()
  bool resident = false;  // from Insert() to Evict() or Remove()
  Nanos change = kNever;  // when its priority has had its time, as far as was looked at
};

using EntryTable = std::vector<Entry>;

// Calls arrive after the entry has been brought up to date. An entry on a rung is taken off it before anything about it
// changes, and put back after.
class Ranker {
 public:
  virtual ~Ranker() = default;
  virtual void Inserted(EntryId) {}
  virtual void Touched(EntryId) {}
  virtual void Evicted(EntryId) {}    // no longer resident
  virtual void Forgotten(EntryId) {}  // its number may stand for another
  virtual void Add(EntryId entry, Rung rung, Nanos now) = 0;
  virtual void Remove(EntryId entry, Rung rung) = 0;
  // Requires that the rung is not empty.
  virtual EntryId Best(Rung rung, Nanos now) = 0;
  // Comparisons and moves so far: what victims cost, without a clock.
  virtual uint64_t steps() const = 0;
};

}  // namespace cachalot::kv
