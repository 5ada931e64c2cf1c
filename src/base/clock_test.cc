#include "base/clock.h"

#include <gtest/gtest.h>

namespace cachalot {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(SteadyClock, NeverGoesBack) {
  const SteadyClock clock;
  Nanos last = clock.Now();
  for (int i = 0; i < 10'000; ++i) {
    const Nanos now = clock.Now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(SteadyClock, WallTimeIsInThisCentury) {
  EXPECT_GT(SteadyClock().UnixSeconds(), 1'700'000'000);
  EXPECT_LT(SteadyClock().UnixSeconds(), 4'102'444'800);
}

TEST(ManualClock, StandsStillUntilAdvancedAndMovesBothTimes) {
  ManualClock clock(1000);
  EXPECT_EQ(clock.Now(), Nanos(0));
  EXPECT_EQ(clock.UnixSeconds(), 1000);
  clock.Advance(milliseconds(1500));
  EXPECT_EQ(clock.Now(), milliseconds(1500));
  EXPECT_EQ(clock.UnixSeconds(), 1001);
  EXPECT_DOUBLE_EQ(ToSeconds(clock.Now()), 1.5);
}

TEST(ManualClock, SleepingJumpsForwardAndNeverBack) {
  ManualClock clock;
  clock.SleepUntil(seconds(5));
  EXPECT_EQ(clock.Now(), seconds(5));
  clock.SleepUntil(seconds(3));
  EXPECT_EQ(clock.Now(), seconds(5));
}

TEST(SteadyClock, SleepingReturnsNoEarlierThanAsked) {
  SteadyClock clock;
  const Nanos moment = clock.Now() + milliseconds(2);
  clock.SleepUntil(moment);
  EXPECT_GE(clock.Now(), moment);
  clock.SleepUntil(Nanos(0));
}

TEST(DeadlineIn, AnEndlessWaitDoesNotOverflow) {
  const auto soon = DeadlineIn(seconds(1));
  const auto never = DeadlineIn(Nanos::max());
  EXPECT_GT(never, soon + std::chrono::hours(24 * 365));
}

}  // namespace
}  // namespace cachalot
