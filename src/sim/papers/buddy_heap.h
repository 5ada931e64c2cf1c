// BuddyHeap hands out contiguous pieces whose sizes are powers of two, as servers without pages do: larger pieces are
// halved as needed, and halves that are both free are joined again.
// Threads:   one.
// Ownership: counts only.
// Invariant: pieces that are taken do not overlap; when all are given back, it is as it was.
// Cost:      O(log size) per call.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace cachalot::sim {

class BuddyHeap {
 public:
  // Of any size: it is cut into the powers of two of which it is the sum.
  explicit BuddyHeap(uint32_t size);

  // Where a piece of at least `size` begins. Nothing: there is none. Requires size > 0.
  std::optional<uint32_t> Take(uint32_t size);
  // Requires that it was taken with this size.
  void Give(uint32_t at, uint32_t size);

 private:
  struct Root {
    uint32_t at, size;
  };
  std::set<uint32_t>& FreeOf(uint64_t size);
  const Root& RootOf(uint32_t at) const;

  std::vector<Root> roots_;
  std::array<std::set<uint32_t>, 33> free_;  // by the logarithm of the size: where
};

}  // namespace cachalot::sim
