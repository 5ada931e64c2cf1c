#include "kv/slot_pool.h"

#include "base/check.h"

namespace cachalot::kv {

SlotPool::SlotPool(uint32_t slots) : references_(slots, 0) {
  free_.reserve(slots);
  for (uint32_t i = slots; i > 0; --i) free_.push_back(SlotId(i - 1));
}

SlotId SlotPool::Take() {
  CACHALOT_CHECK(!free_.empty());
  const SlotId slot = free_.back();
  free_.pop_back();
  references_[slot.value] = 1;
  return slot;
}

void SlotPool::Share(SlotId slot) {
  CACHALOT_CHECK(references_[slot.value] > 0);
  ++references_[slot.value];
}

void SlotPool::Release(SlotId slot) {
  CACHALOT_CHECK(references_[slot.value] > 0);
  if (--references_[slot.value] == 0) free_.push_back(slot);
}

}  // namespace cachalot::kv
