#include "sim/papers/buddy_heap.h"

#include <algorithm>
#include <bit>

namespace cachalot::sim {

BuddyHeap::BuddyHeap(uint32_t size) {
  for (uint32_t at = 0, left = size; left > 0;) {
    const uint32_t root = std::bit_floor(left);
    roots_.push_back({at, root});
    FreeOf(root).insert(at);
    at += root;
    left -= root;
  }
}

std::set<uint32_t>& BuddyHeap::FreeOf(uint64_t size) { return free_[static_cast<size_t>(std::countr_zero(size))]; }

const BuddyHeap::Root& BuddyHeap::RootOf(uint32_t at) const {
  return *std::ranges::find_if(roots_, [&](const Root& root) { return at - root.at < root.size; });
}

std::optional<uint32_t> BuddyHeap::Take(uint32_t size) {
  const uint64_t wanted = std::bit_ceil(uint64_t{size});
  uint64_t piece = wanted;
  while (!roots_.empty() && piece <= roots_.front().size && FreeOf(piece).empty()) piece *= 2;
  if (roots_.empty() || piece > roots_.front().size) return std::nullopt;
  const uint32_t at = *FreeOf(piece).begin();
  FreeOf(piece).erase(at);
  for (; piece > wanted; piece /= 2) FreeOf(piece / 2).insert(at + static_cast<uint32_t>(piece / 2));
  return at;
}

void BuddyHeap::Give(uint32_t at, uint32_t size) {
  const Root& root = RootOf(at);
  uint32_t piece = std::bit_ceil(size);
  while (piece < root.size && FreeOf(piece).erase(root.at + ((at - root.at) ^ piece)) > 0) {
    at = root.at + ((at - root.at) & ~piece);
    piece *= 2;
  }
  FreeOf(piece).insert(at);
}

}  // namespace cachalot::sim
