// SlotPool is a fixed set of slots with a reference count each.
// Threads:   owned by the engine thread.
// Ownership: references are held by PageTables and by the PrefixIndex (one per slot that it lists), which alone count
//            them; the pool must outlive both.
// Invariant: a slot is on the free list iff nobody references it and no copy of it runs; it is idle iff only the index
//            references it, deferred iff only a copy holds it; else it is in use. The free list is a stack that starts
//            with slot 0 on top, so equal calls take equal slots, and undoing calls in reverse order restores it
//            exactly.
// Cost:      O(1) per call, no allocation after construction but for slots to be scrubbed.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "kv/slot_transfers.h"

namespace cachalot::kv {

// What a slot in use holds: blocks of full attention stay as long as their sequence, those of a window do not.
enum class SlotUse : uint8_t { kFull = 0, kSliding = 1 };

class SlotPool {
 public:
  explicit SlotPool(uint32_t slots);
  SlotPool(const SlotPool&) = delete;
  SlotPool& operator=(const SlotPool&) = delete;

  uint32_t slots() const { return static_cast<uint32_t>(references_.size()); }
  uint32_t free_count() const { return static_cast<uint32_t>(free_.size()); }
  uint32_t idle_count() const { return idle_; }
  // They come free when their copies end.
  uint32_t deferred_count() const { return transfers_.deferred(); }
  uint32_t given_up_count() const { return free_count() + deferred_count(); }
  uint32_t in_use(SlotUse use) const { return in_use_[static_cast<size_t>(use)]; }
  uint32_t references(SlotId slot) const { return references_.at(slot.value); }
  bool indexed(SlotId slot) const { return indexed_.at(slot.value); }

  // What the slot holds is to be overwritten once nobody refers to it. Requires references(slot) > 0.
  void ScrubWhenFree(SlotId slot) { scrub_.at(slot.value) = true; }
  // Those that became free since the last call; they may have been taken again.
  std::vector<SlotId> TakeToScrub() { return std::exchange(to_scrub_, {}); }

  // Copies whose slots must not be taken before they end. Requires that the slot is indexed, or was.
  void BeginCopyOut(SlotId slot) { transfers_.BeginOut(slot); }
  void EndCopyOut(SlotId slot) { ListIfFreed(slot, transfers_.EndOut(slot)); }
  // Requires that nobody has sealed it.
  void BeginCopyIn(SlotId slot) { transfers_.BeginIn(slot); }
  void EndCopyIn(SlotId slot) { ListIfFreed(slot, transfers_.EndIn(slot)); }
  const SlotTransfers& transfers() const { return transfers_; }

  bool to_scrub(SlotId slot) const { return scrub_.at(slot.value); }
  // The next slot taken is the last. Valid until the next change.
  std::span<const SlotId> free_list() const { return free_; }

 private:
  friend class PageTable;
  friend class PrefixIndex;
  // A free slot, now with one reference. Requires free_count() > 0.
  SlotId Take(SlotUse use);
  // A slot that was given up, and out of which a copy still runs; now with one reference.
  void TakeBack(SlotId slot);
  // One reference more. Requires references(slot) > 0.
  void Share(SlotId slot);
  // One reference less; the last one frees the slot.
  void Release(SlotId slot);
  // The index's reference. Requires that the slot is in use, and not indexed.
  void AddToIndex(SlotId slot);
  void RemoveFromIndex(SlotId slot);

  void ListIfFreed(SlotId slot, SlotFate fate);
  uint32_t& in_use_like(SlotId slot) { return in_use_[static_cast<size_t>(uses_[slot.value])]; }

  SlotTransfers transfers_;
  std::vector<uint32_t> references_;  // by slot
  std::vector<SlotUse> uses_;         // by slot
  std::vector<bool> indexed_;         // by slot
  std::vector<bool> scrub_;           // by slot
  std::vector<SlotId> to_scrub_;
  uint32_t idle_ = 0;
  uint32_t in_use_[2] = {};
  std::vector<SlotId> free_;
};

}  // namespace cachalot::kv
