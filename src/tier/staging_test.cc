#include "tier/staging.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "tier/host_arena.h"

namespace cachalot::tier {
namespace {

constexpr uint64_t kPage = StagingPool::kPage;

HostArena Arena(uint64_t bytes) {
  return HostArena::Claim({.bytes = bytes}, {uint64_t{1} << 40, uint64_t{1} << 40, false}, {}).value();
}

TEST(StagingPool, PartsAreWholeAndAligned) {
  const HostArena arena = Arena(4 * kPage);
  StagingPool pool(arena.bytes());
  const auto part = pool.Take(kPage + 1);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->size(), kPage + 1);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(part->data()) % kPage, 0u);
  EXPECT_EQ(pool.taken_bytes(), 2 * kPage);
  EXPECT_FALSE(pool.Fits(2 * kPage + 1));
  EXPECT_FALSE(pool.Take(2 * kPage + 1));
  EXPECT_EQ(pool.taken_bytes(), 2 * kPage);
  EXPECT_TRUE(pool.Take(2 * kPage));
}

TEST(StagingPool, MemoryBeyondTheLastWholePageIsNotGivenOut) {
  const HostArena arena = Arena(2 * kPage + 100);
  StagingPool pool(arena.bytes());
  EXPECT_EQ(pool.total_bytes(), 2 * kPage);
  EXPECT_FALSE(pool.Take(2 * kPage + 1));
  EXPECT_FALSE(pool.Fits(UINT64_MAX));
  EXPECT_FALSE(StagingPool({}).Take(1));
}

TEST(StagingPool, PartsGivenBackJoinAgain) {
  const HostArena arena = Arena(3 * kPage);
  StagingPool pool(arena.bytes());
  std::vector<std::span<std::byte>> parts;
  for (int i = 0; i < 3; ++i) parts.push_back(*pool.Take(kPage));
  pool.GiveBack(parts[0]);
  pool.GiveBack(parts[2]);
  EXPECT_FALSE(pool.Fits(2 * kPage));
  pool.GiveBack(parts[1]);
  EXPECT_TRUE(pool.Fits(3 * kPage));
  EXPECT_EQ(pool.taken_bytes(), 0u);
}

TEST(StagingPool, RandomPartsNeverOverlapAndTheirPagesAddUp) {
  const HostArena arena = Arena(64 * kPage);
  StagingPool pool(arena.bytes());
  SplitMix64 random(1);
  std::vector<std::span<std::byte>> taken;
  std::vector<bool> pages(64, false);
  const auto mark = [&](std::span<std::byte> part, bool value) {
    const size_t first = (part.data() - arena.bytes().data()) / kPage;
    for (size_t i = first; i < first + (part.size() + kPage - 1) / kPage; ++i) {
      ASSERT_NE(pages.at(i), value);
      pages[i] = value;
    }
  };
  for (int op = 0; op < 20000; ++op) {
    if (random.Below(2) == 0) {
      const uint64_t bytes = 1 + random.Below(12 * kPage);
      // What one piece of free pages is long enough for.
      size_t run = 0, longest = 0;
      for (const bool page : pages) longest = std::max(longest, run = page ? 0 : run + 1);
      const auto part = pool.Take(bytes);
      ASSERT_EQ(part.has_value(), bytes <= longest * kPage);
      if (!part) continue;
      mark(*part, true);
      taken.push_back(*part);
    } else if (!taken.empty()) {
      std::swap(taken[random.Below(taken.size())], taken.back());
      mark(taken.back(), false);
      pool.GiveBack(taken.back());
      taken.pop_back();
    }
    ASSERT_EQ(pool.taken_bytes(), kPage * static_cast<uint64_t>(std::ranges::count(pages, true)));
  }
}

struct Home : StagingHome {
  void GiveBack(std::span<std::byte> part) override { given_back.push_back(part.size()); }
  std::vector<size_t> given_back;
};

TEST(Staging, GoesBackOnceWhereverItWasMoved) {
  Home home;
  std::vector<std::byte> memory(8);
  {
    Staging first(&home, std::span(memory).first(3));
    Staging moved(std::move(first));
    EXPECT_EQ(moved.bytes().size(), 3u);
    Staging other(&home, std::span(memory).last(5));
    other = std::move(moved);
    EXPECT_EQ(other.bytes().size(), 3u);
  }
  std::ranges::sort(home.given_back);
  EXPECT_EQ(home.given_back, (std::vector<size_t>{3, 5}));
}

}  // namespace
}  // namespace cachalot::tier
