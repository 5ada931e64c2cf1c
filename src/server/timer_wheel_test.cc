#include "server/timer_wheel.h"

#include <chrono>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace cachalot::server {
namespace {

using std::chrono::milliseconds;

TEST(TimerWheel, FiresOnceAtTheFirstAdvanceAfterTheDeadline) {
  TimerWheel wheel(milliseconds(1000), milliseconds(10));
  int fired = 0;
  TimerWheel::Timer timer([&] { ++fired; });
  wheel.Schedule(&timer, milliseconds(1035));
  wheel.Advance(milliseconds(1030));
  EXPECT_EQ(fired, 0);
  EXPECT_TRUE(timer.scheduled());
  wheel.Advance(milliseconds(1040));
  EXPECT_EQ(fired, 1);
  EXPECT_FALSE(timer.scheduled());
  wheel.Advance(milliseconds(90000));
  EXPECT_EQ(fired, 1);
}

TEST(TimerWheel, MovingAndCancellingAndDestroyingTakeEffect) {
  TimerWheel wheel(Nanos(0), milliseconds(10));
  int moved = 0, cancelled = 0, destroyed = 0;
  TimerWheel::Timer later([&] { ++moved; }), never([&] { ++cancelled; });
  auto gone = std::make_unique<TimerWheel::Timer>([&] { ++destroyed; });
  for (TimerWheel::Timer* timer : {&later, &never, gone.get()}) wheel.Schedule(timer, milliseconds(20));
  wheel.Schedule(&later, milliseconds(100));
  never.Cancel();
  gone.reset();
  wheel.Advance(milliseconds(50));
  EXPECT_EQ(moved + cancelled + destroyed, 0);
  wheel.Advance(milliseconds(100));
  EXPECT_EQ(moved, 1);
  EXPECT_EQ(cancelled + destroyed, 0);
}

TEST(TimerWheel, ATimerMayScheduleItselfAndDestroyOthersWhileFiring) {
  TimerWheel wheel(Nanos(0), milliseconds(10));
  int fired = 0;
  auto other = std::make_unique<TimerWheel::Timer>([&] { ++fired; });
  std::unique_ptr<TimerWheel::Timer> timer;
  timer = std::make_unique<TimerWheel::Timer>([&] {
    ++fired;
    other.reset();
    if (fired < 3) wheel.Schedule(timer.get(), milliseconds(10));  // past already: fires with the next Advance
  });
  wheel.Schedule(timer.get(), milliseconds(10));
  wheel.Schedule(other.get(), milliseconds(10));
  wheel.Advance(milliseconds(10));
  EXPECT_EQ(fired, 1);
  wheel.Advance(milliseconds(20));
  EXPECT_EQ(fired, 2);
}

TEST(TimerWheel, AgreesWithAListOfDeadlinesOverManyRotations) {
  constexpr int64_t kTick = 7;
  TimerWheel wheel(Nanos(0), Nanos(kTick));
  SplitMix64 random(1);
  struct Item {
    int64_t deadline = -1;
    int fired = 0;
    std::unique_ptr<TimerWheel::Timer> timer;
  };
  std::vector<Item> items(100);
  for (Item& item : items) item.timer = std::make_unique<TimerWheel::Timer>([&item] { ++item.fired; });
  int64_t now = 0;
  for (int round = 0; round < 2000; ++round) {
    Item& item = items[random.Below(items.size())];
    if (random.Below(4) == 0) {
      item.timer->Cancel();
      item.deadline = -1;
    } else {
      item.deadline = now + 1 + static_cast<int64_t>(random.Below(10000));
      wheel.Schedule(item.timer.get(), Nanos(item.deadline));
    }
    now += static_cast<int64_t>(random.Below(100));
    for (Item& other : items) other.fired = 0;
    wheel.Advance(Nanos(now));
    for (Item& other : items) {
      // May be late by less than a tick, never early.
      if (other.fired > 0) {
        ASSERT_EQ(other.fired, 1);
        ASSERT_GE(other.deadline, 0);
        ASSERT_LE(other.deadline, now);
        other.deadline = -1;
      } else if (other.deadline >= 0) {
        ASSERT_GT(other.deadline + kTick, now);
      }
    }
  }
}

}  // namespace
}  // namespace cachalot::server
