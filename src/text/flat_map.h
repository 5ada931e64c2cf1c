// FlatMap maps 64-bit keys to small values: open addressing in one array, filled once and then read.
// Threads:   any thread may Find while none calls Set.
// Ownership: owns its array.
// Invariant: at most half of the slots are used, so a probe ends; key ~0 is not allowed.
// Cost:      Find is one hash and, nearly always, one cache line.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cachalot::text {

template <class Value>
class FlatMap {
 public:
  // Room for `expected` keys without growing.
  explicit FlatMap(size_t expected = 0) : slots_(SlotsFor(expected)) {}

  size_t size() const { return size_; }

  // Null when absent.
  const Value* Find(uint64_t key) const {
    for (size_t i = Home(key);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].key == key) return &slots_[i].value;
      if (slots_[i].key == kEmpty) return nullptr;
    }
  }

  // Adds the key or replaces its value. Requires key != ~0.
  void Set(uint64_t key, Value value) {
    if ((size_ + 1) * 2 > slots_.size()) Grow();
    Slot& slot = SlotOf(key);
    size_ += slot.key == kEmpty;
    slot = {key, value};
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  struct Slot {
    uint64_t key = kEmpty;
    Value value{};
  };

  static size_t SlotsFor(size_t expected) { return std::bit_ceil(std::max<size_t>(expected * 2, 4)); }

  // Multiply and fold: every bit of the key reaches the index.
  size_t Home(uint64_t key) const {
    const uint64_t mixed = (key ^ key >> 32) * 0x9E3779B97F4A7C15u;
    return (mixed ^ mixed >> 32) & (slots_.size() - 1);
  }

  Slot& SlotOf(uint64_t key) {
    size_t i = Home(key);
    while (slots_[i].key != key && slots_[i].key != kEmpty) i = (i + 1) & (slots_.size() - 1);
    return slots_[i];
  }

  void Grow() {
    std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
    for (const Slot& slot : old)
      if (slot.key != kEmpty) SlotOf(slot.key) = slot;
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace cachalot::text
