#include "kv/slot_pool.h"

#include "base/check.h"

namespace cachalot::kv {

SlotPool::SlotPool(uint32_t slots)
    : transfers_(slots),
      references_(slots, 0),
      uses_(slots, SlotUse::kFull),
      indexed_(slots, false),
      scrub_(slots, false) {
  free_.reserve(slots);
  for (uint32_t i = slots; i > 0; --i) free_.push_back(SlotId(i - 1));
}

SlotId SlotPool::Take(SlotUse use) {
  CACHALOT_CHECK(!free_.empty());
  const SlotId slot = free_.back();
  free_.pop_back();
  transfers_.Take(slot);
  references_[slot.value] = 1;
  uses_[slot.value] = use;
  ++in_use_like(slot);
  return slot;
}

void SlotPool::TakeBack(SlotId slot) {
  transfers_.TakeBack(slot);
  references_[slot.value] = 1;
  ++in_use_like(slot);
}

void SlotPool::Share(SlotId slot) {
  CACHALOT_CHECK(references_[slot.value] > 0);
  if (++references_[slot.value] == 2 && indexed_[slot.value]) {
    --idle_;
    ++in_use_like(slot);
  }
}

void SlotPool::Release(SlotId slot) {
  CACHALOT_CHECK(references_[slot.value] > (indexed_[slot.value] ? 1u : 0u));
  const uint32_t left = --references_[slot.value];
  if (left == (indexed_[slot.value] ? 1u : 0u)) --in_use_like(slot);
  if (left == 0) ListIfFreed(slot, transfers_.Release(slot));
  if (left == 1 && indexed_[slot.value]) ++idle_;
}

void SlotPool::AddToIndex(SlotId slot) {
  CACHALOT_CHECK(references_[slot.value] > 0 && !indexed_[slot.value]);
  indexed_[slot.value] = true;
  if (transfers_.slot(slot).state != SlotState::kSealed) transfers_.Seal(slot);
  ++references_[slot.value];
}

void SlotPool::RemoveFromIndex(SlotId slot) {
  CACHALOT_CHECK(indexed_[slot.value]);
  indexed_[slot.value] = false;
  if (--references_[slot.value] > 0) return;
  --idle_;
  ListIfFreed(slot, transfers_.Release(slot));
}

void SlotPool::ListIfFreed(SlotId slot, SlotFate fate) {
  if (fate != SlotFate::kFreed) return;
  free_.push_back(slot);
  if (!scrub_[slot.value]) return;
  scrub_[slot.value] = false;
  to_scrub_.push_back(slot);
}

}  // namespace cachalot::kv
