// SlotPool is a fixed set of slots with a reference count each.
// Threads:   owned by the engine thread.
// Ownership: references are held by PageTables, which alone count them; the pool must outlive its tables.
// Invariant: a slot is on the free list iff nobody references it. The free list is a stack that starts with slot 0 on
//            top, so equal calls take equal slots, and undoing calls in reverse order restores it exactly.
// Cost:      O(1) per call, no allocation after construction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace cachalot::kv {

class SlotPool {
 public:
  explicit SlotPool(uint32_t slots);
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  uint32_t slots() const { return static_cast<uint32_t>(references_.size()); }
  uint32_t free_count() const { return static_cast<uint32_t>(free_.size()); }
  uint32_t references(SlotId slot) const { return references_.at(slot.value); }

  // The next slot taken is the last. Valid until the next change.
  std::span<const SlotId> free_list() const { return free_; }

 private:
  friend class PageTable;
  // A free slot, now with one reference. Requires free_count() > 0.
  SlotId Take();
  // One reference more. Requires references(slot) > 0.
  void Share(SlotId slot);
  // One reference less; the last one frees the slot.
  void Release(SlotId slot);

  std::vector<uint32_t> references_;  // by slot
  std::vector<SlotId> free_;
};

}  // namespace cachalot::kv
