#include "sched/waiting_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cachalot::sched {
namespace {

using testing::ElementsAre;

constexpr TenantId kA{0}, kB{1};

TEST(WaitingOrder, LongestResidentPrefixFirstThenArrival) {
  const WaitingView waiting[] = {{0, 0}, {100, 0}, {50, 0}, {100, 0}, {0, 0}};
  EXPECT_THAT(WaitingOrder().Of(waiting, 4), ElementsAre(1, 3, 2, 0, 4));
}

TEST(WaitingOrder, WhoWasOvertakenOftenComesFirst) {
  const WaitingView waiting[] = {{0, 3}, {0, 4}, {50, 9}, {100, 0}};
  EXPECT_THAT(WaitingOrder().Of(waiting, 4), ElementsAre(1, 2, 3, 0));
}

TEST(WaitingOrder, EachTenantHasItsOwn) {
  const WaitingView waiting[] = {{0, 0, kB}, {10, 0, kA}, {50, 0, kB}, {0, 4, kA}, {9, 9, kB}};
  EXPECT_THAT(WaitingOrder().Of(waiting, 4), ElementsAre(3, 1, 4, 2, 0));
}

TEST(WaitingOrder, NobodyWaitsInAnEmptyQueue) {
  WaitingOrder order;
  const WaitingView waiting[] = {{0, 0}};
  order.Of(waiting, 4);
  EXPECT_THAT(order.Of({}, 4), ElementsAre());
}

}  // namespace
}  // namespace cachalot::sched
