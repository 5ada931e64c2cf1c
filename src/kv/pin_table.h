// PinTable keeps prefixes from being evicted for a while, within a budget of slots.
// Threads:   owned by the engine thread.
// Ownership: a pin is a sequence that holds the prefix's blocks and never grows, with a promise for those of sliding
//            groups; manager and budget must outlive the table.
// Invariant: what pins hold of full attention, each slot once, and their promises together are at most `most_slots`: a
//            request whose peak leaves room for that many can always run in the end. Two pins never end with the same
//            block, so there are no more of them than pinned slots.
// Cost:      Pin is a few look-ups of the prefix; the others are O(blocks) per pin that ends.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/prefix_scope.h"
#include "kv/geometry.h"
#include "kv/slot_budget.h"

namespace cachalot::kv {

class KvManager;

class PinTable {
 public:
  PinTable(KvManager& kv, SlotBudget& budget, uint32_t most_slots);
  ~PinTable();
  PinTable(const PinTable&) = delete;
  PinTable& operator=(const PinTable&) = delete;

  // Pins what is resident of these tokens, in whole blocks, or as much of its beginning as there is room for. Says how
  // many tokens that is. A pin that ends with the same block ends no sooner than it would have. Requires that no
  // reservation is open.
  uint64_t Pin(const PrefixScope& scope, std::span<const TokenId> tokens, Nanos deadline);
  // The same until it is let go of; without tokens there was no room.
  struct Standing {
    uint32_t last_slot = 0;
    uint64_t tokens = 0;
  };
  Standing Stand(const PrefixScope& scope, std::span<const TokenId> tokens);
  // Requires that it has tokens, and no EndAll since.
  void LetGo(const Standing& standing);
  // Ends those whose time has come and that nobody stands on, at most `limit`; says how many those were.
  uint32_t EndDue(Nanos now, uint32_t limit);
  void EndAll();

  // When the next one ends.
  std::optional<Nanos> NextDeadline() const;
  uint32_t most_slots() const { return most_slots_; }
  // Held or promised.
  uint32_t slots() const { return full_slots_ + window_slots_; }

 private:
  using LastSlot = uint32_t;  // of the prefix's last block: names it as long as it is held
  struct Held {
    SequenceId sequence;
    SlotPromise windows;
    Nanos deadline{0};
    uint32_t standing = 0;
  };
  struct Wish {
    Nanos deadline{0};
    uint32_t standing = 0;
  };

  Standing Pin(const PrefixScope& scope, std::span<const TokenId> tokens, const Wish& wish);
  bool Extend(SequenceId sequence, const Wish& wish);
  bool Keep(SequenceId sequence, const Wish& wish);
  void Add(LastSlot last, const Wish& wish);
  uint32_t Excess(SequenceId sequence) const;
  LastSlot LastSlotOf(SequenceId sequence) const;
  uint32_t NewFullSlots(SequenceId sequence) const;
  uint32_t WindowSlots(SequenceId sequence) const;
  void Count(SequenceId sequence, int change);
  void End(LastSlot last);

  KvManager& kv_;
  SlotBudget& budget_;
  const uint32_t most_slots_;
  const uint32_t full_groups_;  // what a shorter prefix gives back per block; at least 1
  std::map<LastSlot, Held> pins_;
  std::set<std::pair<Nanos, LastSlot>> by_deadline_;  // that nobody stands on
  std::vector<uint32_t> holders_;                     // by slot: pins that hold it, of full attention
  uint32_t full_slots_ = 0;                           // with holders
  uint32_t window_slots_ = 0;                         // promised for windows; what two pins hold counts twice
};

}  // namespace cachalot::kv
