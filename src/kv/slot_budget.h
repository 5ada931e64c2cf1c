// SlotBudget promises slots to admitted work, beyond those that it holds, so that whatever is admitted can finish.
// Threads:   owned by the engine thread.
// Ownership: a SlotPromise gives its slots back when it is destroyed; the budget must outlive it.
// Invariant: a promise is made only where live promises and slots in use together leave room for it.
// Cost:      O(1).
#pragma once

#include <cstdint>
#include <utility>

#include "base/status.h"

namespace cachalot::kv {

class SlotBudget;

class SlotPromise {
 public:
  SlotPromise() = default;
  SlotPromise(SlotPromise&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), slots_(std::exchange(other.slots_, 0)) {}
  SlotPromise& operator=(SlotPromise&& other) noexcept;
  ~SlotPromise();

  uint64_t slots() const { return slots_; }
  // Gives back all but `slots`. Requires slots <= slots().
  void ShrinkTo(uint64_t slots);
  // Promises again slots that were taken out of it and given up since. Requires a promise of some budget.
  void Restore(uint64_t slots);

 private:
  friend class SlotBudget;
  SlotPromise(SlotBudget* budget, uint64_t slots) : budget_(budget), slots_(slots) {}
  SlotBudget* budget_ = nullptr;
  uint64_t slots_ = 0;
};

class SlotBudget {
 public:
  explicit SlotBudget(uint64_t total) : total_(total) {}
  SlotBudget(const SlotBudget&) = delete;

  uint64_t total() const { return total_; }
  uint64_t promised() const { return promised_; }
  // kOverloaded, with needed and available, when what `in_use` and other promises leave is too small.
  Result<SlotPromise> Promise(uint64_t slots, uint64_t in_use = 0);

 private:
  friend class SlotPromise;
  uint64_t total_;
  uint64_t promised_ = 0;
};

}  // namespace cachalot::kv
