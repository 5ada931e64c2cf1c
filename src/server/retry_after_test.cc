#include "server/retry_after.h"

#include <chrono>

#include <gtest/gtest.h>

namespace cachalot::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RetryAfter, IsTheTimeThatTheQueueTakesWithinBounds) {
  EXPECT_EQ(RetryAfterSeconds(100, 50, seconds(10)), 20u);
  EXPECT_EQ(RetryAfterSeconds(7, 2, seconds(1)), 4u);  // 3.5, rounded up
  EXPECT_EQ(RetryAfterSeconds(1, 1000, seconds(1)), 1u);
  EXPECT_EQ(RetryAfterSeconds(1000, 1, seconds(1)), 60u);
  EXPECT_EQ(RetryAfterSeconds(0, 0, seconds(0)), 1u);    // a queue without places is never shorter
  EXPECT_EQ(RetryAfterSeconds(5, 0, seconds(60)), 60u);  // nothing moves
  EXPECT_EQ(RetryAfterSeconds(5, 3, seconds(0)), 1u);
  EXPECT_EQ(RetryAfterSeconds(UINT64_MAX, 1, seconds(60)), 60u);
}

TEST(RetryAfter, TheRateIsThatOfTheLastMinute) {
  FinishRate rate(seconds(100));
  EXPECT_EQ(rate.RetryAfter(seconds(100), 10), 60u);
  rate.Note(seconds(100), 2);
  rate.Note(seconds(110), 10);
  EXPECT_EQ(rate.RetryAfter(seconds(110), 10), 10u);  // one per second since the start
  EXPECT_EQ(rate.RetryAfter(seconds(150), 10), 50u);  // 10 in 50 s
  rate.Note(seconds(200), 40);
  EXPECT_EQ(rate.RetryAfter(seconds(200), 10), 20u);  // 30 in 60 s
  EXPECT_EQ(rate.RetryAfter(seconds(300), 10), 60u);  // none in 60 s
}

TEST(RetryAfter, NotesOfOneSecondAreKeptTogether) {
  FinishRate rate(seconds(0));
  uint64_t finished = 0;
  for (Nanos now{0}; now < seconds(1000); now += milliseconds(100)) rate.Note(now, ++finished);
  EXPECT_EQ(rate.RetryAfter(seconds(1000), 95), 10u);  // ten per second
}

}  // namespace
}  // namespace cachalot::server
