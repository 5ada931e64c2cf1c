#include "sched/write_behind.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace cachalot::sched {
namespace {

Nanos Millis(int64_t n) { return std::chrono::milliseconds(n); }

// What is not written stays, until its room is needed: then it is computed again.
TEST(WayDown, WhatSavesMoreThanItCostsIsWrittenBehind) {
  const auto writes = [](const ReuseView& view, double price) {
    const double lost = view.probability * view.recompute_seconds;
    return ChooseWayDown({.reuse = view, .keep = lost, .write_price = price}).least == WayDown::kHandDown;
  };
  const ReuseView view{.probability = 0.5, .recompute_seconds = 3, .load_seconds = 1, .write_seconds = 2};
  EXPECT_TRUE(writes(view, 0.4));
  EXPECT_FALSE(writes(view, 0.5));  // as much is not more
  EXPECT_FALSE(writes(view, 1));
  ReuseView slow = view;
  slow.load_seconds = 4;  // nobody would load it
  EXPECT_FALSE(writes(slow, 0));
  ReuseView never = view;
  never.probability = 0;
  EXPECT_FALSE(writes(never, 0));
}

TEST(WriteUntil, WhatIsWishedForATimeIsWrittenForThatTimeUnlessItIsThereForMostOfIt) {
  constexpr Nanos kNever = Nanos::max(), kNow = std::chrono::hours(1), kDay = std::chrono::hours(24);
  EXPECT_EQ(WriteUntil({.now = kNow, .wanted_until = kNow + kDay}), kNow + kDay);
  EXPECT_EQ(WriteUntil({.now = kNow, .wanted_until = kNever}), kNever);
  EXPECT_EQ(WriteUntil({.now = kNow, .wanted_until = kNow + Millis(5000)}), std::nullopt);  // gone too soon
  EXPECT_EQ(WriteUntil({.now = kNow, .wanted_until = kNow - kNow}), std::nullopt);
  const auto again = [&](Nanos wanted_until, Nanos stored_until, bool whole = true) {
    return WriteUntil({.now = kNow, .wanted_until = wanted_until, .stored_until = stored_until, .stored_whole = whole});
  };
  EXPECT_EQ(again(kNever, kNever), std::nullopt);
  EXPECT_EQ(again(kNow + kDay, kNever), std::nullopt);
  EXPECT_EQ(again(kNow + kDay, kNow + kDay / 2), std::nullopt);
  EXPECT_EQ(again(kNow + kDay, kNow + kDay / 2 - Nanos(1)), kNow + kDay);
  EXPECT_EQ(again(kNever, kNow + kDay), kNever);
  // More of it is written, and nothing lost: whoever wished longest has it.
  EXPECT_EQ(again(kNow + kDay, kNever, false), kNever);
  EXPECT_EQ(again(kNow + kDay / 2, kNow + kDay, false), kNow + kDay);
}

TEST(WriteBudget, HoldsItsRateWhateverTheSizesAndPauses) {
  constexpr uint64_t kRate = 1000, kBurst = 500, kLargest = 700;
  WriteBudget budget(kRate, kBurst);
  SplitMix64 random(1);
  struct Write {
    int64_t millis;
    uint64_t bytes;
  };
  std::vector<Write> writes;
  int64_t now = 0;
  for (int i = 0; i < 3000; ++i) {
    now += static_cast<int64_t>(random.Below(random.Below(50) == 0 ? 5000 : 100));
    const uint64_t bytes = 1 + random.Below(kLargest);
    if (budget.Take(bytes, Millis(now))) writes.push_back({now, bytes});
  }
  uint64_t total = 0;
  for (size_t first = 0; first < writes.size(); ++first) {
    uint64_t bytes = 0;
    for (size_t last = first; last < std::min(writes.size(), first + 200); ++last) {
      bytes += writes[last].bytes;
      const auto millis = static_cast<uint64_t>(writes[last].millis - writes[first].millis);
      ASSERT_LE(bytes, kBurst + kRate * millis / 1000 + kLargest + 1);
    }
    total += writes[first].bytes;
  }
  EXPECT_GT(total, kRate * static_cast<uint64_t>(now) / 1000 * 6 / 10);  // and is not wasted while there is demand
}

TEST(WriteBudget, ALargeWriteIsPaidForAfterwards) {
  WriteBudget budget(1000, 100);
  EXPECT_TRUE(budget.Take(2100, Millis(0)));  // more than the bucket ever holds
  EXPECT_FALSE(budget.Take(1, Millis(1999)));
  EXPECT_TRUE(budget.Take(1, Millis(2001)));
}

TEST(WriteBudget, ZeroIsNothingAndNoneIsNoLimit) {
  WriteBudget none(0, 1000);
  EXPECT_FALSE(none.Take(1, Millis(1'000'000)));
  WriteBudget all(std::nullopt, 0);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(all.Take(UINT64_MAX, Millis(0)));
}

TEST(WriteBudget, TimeThatGoesBackGivesNothing) {
  WriteBudget budget(1000, 100);
  EXPECT_TRUE(budget.Take(100, Millis(1000)));
  EXPECT_FALSE(budget.Take(1, Millis(500)));
  EXPECT_FALSE(budget.Take(1, Millis(1000)));
  EXPECT_TRUE(budget.Take(1, Millis(1010)));
}

TEST(Cleaner, KeepsAShareOfTheEvictableBlocksCopied) {
  EXPECT_EQ(BlocksToClean({.evictable = 100}, 0.25), 25u);
  EXPECT_EQ(BlocksToClean({.evictable = 100, .clean = 20, .copying = 3}, 0.25), 2u);
  EXPECT_EQ(BlocksToClean({.evictable = 100, .clean = 90}, 0.25), 0u);
  EXPECT_EQ(BlocksToClean({.evictable = 3}, 0.25), 1u);
  EXPECT_EQ(BlocksToClean({.evictable = 7, .clean = 1}, 5), 6u);
  EXPECT_EQ(BlocksToClean({.evictable = 7}, -1), 0u);
  EXPECT_EQ(BlocksToClean({}, 1), 0u);
}

TEST(WayDown, TheCheapestWayIsTaken) {
  const ReuseView reuse{.probability = 0.5, .recompute_seconds = 2, .load_seconds = 0.2, .write_seconds = 0.1};
  EXPECT_EQ(ChooseWayDown({.reuse = reuse, .keep = 0.1}).least, WayDown::kKeep);  // its room is hardly wanted
  const DownCosts handed = ChooseWayDown({.reuse = reuse, .keep = 10});
  EXPECT_EQ(handed.least, WayDown::kHandDown);
  EXPECT_NEAR(*handed.hand_down, 0.1 + 0.5 * 0.2, 1e-9);
  EXPECT_NEAR(handed.drop, 1, 1e-9);
  EXPECT_EQ(ChooseWayDown({.reuse = reuse, .keep = 10, .write_price = 20}).least, WayDown::kDrop);
  EXPECT_EQ(ChooseWayDown({.reuse = reuse, .keep = 10, .lower_exists = false}).least, WayDown::kDrop);
}

TEST(WayDown, WhatIsDownThereAlreadyIsNotWrittenAgain) {
  const ReuseView copied{.probability = 0.1, .recompute_seconds = 1, .load_seconds = 0.5, .write_seconds = 0};
  EXPECT_EQ(ChooseWayDown({.reuse = copied, .keep = 10, .write_price = 1e9}).least, WayDown::kHandDown);
}

TEST(WayDown, WhatNobodyWouldLoadIsDropped) {
  const ReuseView slow{.probability = 0.5, .recompute_seconds = 1, .load_seconds = 100, .write_seconds = 0};
  const DownCosts costs = ChooseWayDown({.reuse = slow, .keep = 10});
  EXPECT_EQ(costs.least, WayDown::kDrop);
  EXPECT_EQ(*costs.hand_down, costs.drop);
}

}  // namespace
}  // namespace cachalot::sched
