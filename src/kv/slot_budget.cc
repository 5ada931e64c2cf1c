#include "kv/slot_budget.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"

namespace cachalot::kv {

SlotPromise& SlotPromise::operator=(SlotPromise&& other) noexcept {
  if (this != &other) {
    ShrinkTo(0);
    budget_ = std::exchange(other.budget_, nullptr);
    slots_ = std::exchange(other.slots_, 0);
  }
  return *this;
}

SlotPromise::~SlotPromise() { ShrinkTo(0); }

void SlotPromise::ShrinkTo(uint64_t slots) {
  CACHALOT_CHECK(slots <= slots_);
  if (budget_ == nullptr) return;
  budget_->promised_ -= slots_ - slots;
  slots_ = slots;
}

void SlotPromise::Restore(uint64_t slots) {
  CACHALOT_CHECK(budget_ != nullptr);
  budget_->promised_ += slots;
  slots_ += slots;
}

Result<SlotPromise> SlotBudget::Promise(uint64_t slots, uint64_t in_use) {
  const uint64_t available = total_ - std::min(total_, promised_ + in_use);
  if (slots > available) {
    return Overloaded(fmt::format("KV budget: needed {} slots, available {} of {}", slots, available, total_));
  }
  promised_ += slots;
  return SlotPromise(this, slots);
}

}  // namespace cachalot::kv
