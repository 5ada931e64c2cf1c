// Carver divides a stretch of memory into arrays, so that tables count within the limit that the memory is claimed by.
// Threads:   used by one thread.
// Ownership: none; what is carved lives as long as the memory.
// Invariant: arrays follow each other, each aligned to a cache line; their elements are constructed.
// Cost:      that of constructing the elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "base/check.h"

namespace cachalot::tier {

class Carver {
 public:
  static constexpr uint64_t kAlignment = 64;

  // What Take<T>(count) takes.
  template <class T>
  static constexpr uint64_t BytesFor(uint64_t count) {
    return (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  }

  // Requires memory that is aligned.
  explicit Carver(std::span<std::byte> memory) : rest_(memory) {
    CACHALOT_CHECK(reinterpret_cast<uintptr_t>(memory.data()) % kAlignment == 0);
  }

  // Requires that so much is left.
  template <class T>
  std::span<T> Take(uint64_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= kAlignment);
    CACHALOT_CHECK(BytesFor<T>(count) <= rest_.size());
    T* const first = reinterpret_cast<T*>(rest_.data());
    std::uninitialized_value_construct_n(first, count);
    rest_ = rest_.subspan(BytesFor<T>(count));
    return {first, count};
  }

 private:
  std::span<std::byte> rest_;
};

}  // namespace cachalot::tier
