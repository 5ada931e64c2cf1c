#include "sim/papers/buddy_heap.h"

#include <bit>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace cachalot::sim {
namespace {

TEST(BuddyHeap, PiecesDoNotOverlapAndAreJoinedAgain) {
  constexpr uint32_t kSize = 15'696;  // 8192 + 4096 + 2048 + 1024 + 256 + 64 + 16
  BuddyHeap heap(kSize);
  struct Piece {
    uint32_t at, size;
  };
  std::vector<Piece> taken;
  std::vector<bool> used(kSize);
  SplitMix64 random(1);
  uint32_t refused = 0;
  const auto mark = [&](const Piece& piece, bool as) {
    for (uint32_t i = piece.at; i < piece.at + std::bit_ceil(piece.size); ++i) {
      ASSERT_LT(i, kSize);
      ASSERT_NE(used[i], as);
      used[i] = as;
    }
  };
  for (int i = 0; i < 20'000; ++i) {
    if (random.Below(2) == 0 && !taken.empty()) {
      const size_t which = random.Below(taken.size());
      mark(taken[which], false);
      heap.Give(taken[which].at, taken[which].size);
      taken.erase(taken.begin() + static_cast<ptrdiff_t>(which));
      continue;
    }
    const auto size = static_cast<uint32_t>(1 + random.Below(2048));
    const auto at = heap.Take(size);
    refused += !at;
    if (!at) continue;
    taken.push_back({*at, size});
    mark(taken.back(), true);
  }
  EXPECT_GT(refused, 100u);
  for (const Piece& piece : taken) heap.Give(piece.at, piece.size);
  EXPECT_EQ(heap.Take(8193), std::nullopt);
  EXPECT_EQ(heap.Take(8000), 0u);
  EXPECT_EQ(heap.Take(4096), 8192u);
  EXPECT_EQ(heap.Take(2048), 12'288u);
  EXPECT_EQ(heap.Take(2048), std::nullopt);
}

}  // namespace
}  // namespace cachalot::sim
