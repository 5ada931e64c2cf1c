#include "kv/slot_budget.h"

#include <gtest/gtest.h>

#include <string>

namespace cachalot::kv {
namespace {

SlotPromise Must(Result<SlotPromise> promise) {
  EXPECT_TRUE(promise.ok());
  return std::move(promise).value();
}

TEST(SlotBudget, PromisesUpToTheTotalAndNotOneMore) {
  SlotBudget budget(10);
  const SlotPromise first = Must(budget.Promise(7));
  const Result<SlotPromise> refused = budget.Promise(4);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kOverloaded);
  EXPECT_NE(refused.status().message().find("needed 4"), std::string::npos) << refused.status().message();
  EXPECT_NE(refused.status().message().find("available 3"), std::string::npos) << refused.status().message();
  const SlotPromise second = Must(budget.Promise(3));
  EXPECT_EQ(budget.promised(), 10u);
  EXPECT_FALSE(budget.Promise(1).ok());
  EXPECT_TRUE(budget.Promise(0).ok());
}

TEST(SlotBudget, SlotsInUseAreNotPromised) {
  SlotBudget budget(10);
  const SlotPromise first = Must(budget.Promise(3, 4));
  EXPECT_FALSE(budget.Promise(4, 4).ok());
  EXPECT_TRUE(budget.Promise(3, 4).ok());
  EXPECT_FALSE(budget.Promise(1, 8).ok());
}

TEST(SlotBudget, AHugeRequestDoesNotWrapAround) {
  SlotBudget budget(10);
  const SlotPromise held = Must(budget.Promise(5));
  EXPECT_FALSE(budget.Promise(UINT64_MAX).ok());
  EXPECT_FALSE(budget.Promise(UINT64_MAX - 4).ok());
}

TEST(SlotBudget, EndingOrShrinkingAPromiseGivesItsSlotsBack) {
  SlotBudget budget(10);
  {
    SlotPromise promise = Must(budget.Promise(8));
    promise.ShrinkTo(3);
    EXPECT_EQ(promise.slots(), 3u);
    EXPECT_EQ(budget.promised(), 3u);
  }
  EXPECT_EQ(budget.promised(), 0u);
}

TEST(SlotBudget, SlotsThatWereTakenAndGivenUpArePromisedAgain) {
  SlotBudget budget(10);
  SlotPromise promise = Must(budget.Promise(8));
  promise.ShrinkTo(3);
  promise.Restore(4);
  EXPECT_EQ(promise.slots(), 7u);
  EXPECT_EQ(budget.promised(), 7u);
}

TEST(SlotBudget, MovingKeepsOnePromiseAndEndsTheOneOverwritten) {
  SlotBudget budget(10);
  SlotPromise a = Must(budget.Promise(4));
  SlotPromise b = Must(budget.Promise(5));
  b = std::move(a);
  EXPECT_EQ(budget.promised(), 4u);
  EXPECT_EQ(b.slots(), 4u);
  EXPECT_EQ(a.slots(), 0u);  // NOLINT: a moved-from promise promises nothing
  SlotPromise c(std::move(b));
  b = SlotPromise();
  EXPECT_EQ(budget.promised(), 4u);
  c = SlotPromise();
  EXPECT_EQ(budget.promised(), 0u);
}

}  // namespace
}  // namespace cachalot::kv
