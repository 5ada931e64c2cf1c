#include "sched/waiting_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cachalot::sched {
namespace {

using testing::ElementsAre;

TEST(WaitingOrder, LongestResidentPrefixFirstThenArrival) {
  const WaitingView waiting[] = {{0, 0}, {100, 0}, {50, 0}, {100, 0}, {0, 0}};
  EXPECT_THAT(OrderWaiting(waiting, 4), ElementsAre(1, 3, 2, 0, 4));
}

TEST(WaitingOrder, WhoWasOvertakenOftenComesFirst) {
  const WaitingView waiting[] = {{0, 3}, {0, 4}, {50, 9}, {100, 0}};
  EXPECT_THAT(OrderWaiting(waiting, 4), ElementsAre(1, 2, 3, 0));
}

TEST(WaitingOrder, NobodyWaitsInAnEmptyQueue) { EXPECT_THAT(OrderWaiting({}, 4), ElementsAre()); }

}  // namespace
}  // namespace cachalot::sched
