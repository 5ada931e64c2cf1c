#include "load/schedule.h"

#include <cmath>

#include <gtest/gtest.h>

namespace cachalot::load {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<uint64_t> TakeAll(Schedule* schedule, Nanos now) {
  std::vector<uint64_t> sessions;
  while (const auto start = schedule->Take(now)) sessions.push_back(start->session);
  return sessions;
}

TEST(Schedule, AClosedLoopKeepsItsClientsBusyUntilTheRequestsAreSent) {
  Schedule schedule(Arrivals::ClosedLoop(3), {.requests = 5});
  EXPECT_EQ(TakeAll(&schedule, Nanos(0)), (std::vector<uint64_t>{0, 1, 2}));
  EXPECT_EQ(schedule.NextDue(), std::nullopt);
  schedule.EndSession(seconds(1), false);
  schedule.EndSession(seconds(1), false);
  schedule.EndSession(seconds(1), false);
  EXPECT_EQ(TakeAll(&schedule, seconds(1)), (std::vector<uint64_t>{3, 4}));
  EXPECT_FALSE(schedule.done());
  schedule.EndSession(seconds(2), false);
  schedule.EndSession(seconds(2), false);
  EXPECT_TRUE(schedule.done());
  EXPECT_EQ(schedule.taken(), 5u);
}

TEST(Schedule, AClientPausesAfterAFailure) {
  Schedule schedule(Arrivals::ClosedLoop(1), {});
  EXPECT_EQ(TakeAll(&schedule, Nanos(0)).size(), 1u);
  schedule.EndSession(seconds(1), true);
  EXPECT_EQ(schedule.NextDue(), seconds(1) + Schedule::kPauseAfterFailure);
  EXPECT_TRUE(TakeAll(&schedule, seconds(1)).empty());
}

TEST(Schedule, OpenLoopDoesNotWaitForAnswers) {
  Schedule schedule(Arrivals::At({seconds(1), seconds(1), seconds(3)}), {.sessions = 3});
  EXPECT_TRUE(TakeAll(&schedule, milliseconds(999)).empty());
  EXPECT_EQ(schedule.NextDue(), seconds(1));
  EXPECT_EQ(TakeAll(&schedule, seconds(1)), (std::vector<uint64_t>{0, 1}));
  EXPECT_EQ(TakeAll(&schedule, seconds(9)), (std::vector<uint64_t>{2}));
  EXPECT_EQ(schedule.NextDue(), std::nullopt);
  for (int i = 0; i < 3; ++i) schedule.EndSession(seconds(9), i == 0);
  EXPECT_TRUE(schedule.done());
}

TEST(Schedule, WhatIsBeyondTheCapWaitsAndKeepsItsTime) {
  Schedule schedule(Arrivals::At({seconds(1), seconds(2), seconds(3)}), {.max_in_flight = 2});
  EXPECT_EQ(TakeAll(&schedule, seconds(5)).size(), 2u);
  EXPECT_EQ(schedule.NextDue(), std::nullopt);
  schedule.EndSession(seconds(6), false);
  const std::optional<TurnStart> start = schedule.Take(seconds(6));
  ASSERT_TRUE(start.has_value());
  EXPECT_EQ(start->due, seconds(3));
}

TEST(Schedule, TheNextTurnComesAfterTheThinkTime) {
  Schedule schedule(Arrivals::ClosedLoop(1), {.requests = 2});
  const std::optional<TurnStart> first = schedule.Take(Nanos(0));
  schedule.ContinueAfter(*first, seconds(2), seconds(5));
  EXPECT_FALSE(schedule.done());
  EXPECT_EQ(schedule.NextDue(), seconds(7));
  const std::optional<TurnStart> second = schedule.Take(seconds(7));
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->session, first->session);
  EXPECT_EQ(second->turn, 1u);
}

TEST(Schedule, NothingIsSentAfterTheDuration) {
  Schedule schedule(Arrivals::Poisson(1000, 1), {.duration = seconds(1)});
  uint64_t taken = 0;
  while (const std::optional<Nanos> due = schedule.NextDue()) {
    EXPECT_LT(*due, seconds(1));
    ASSERT_TRUE(schedule.Take(*due).has_value());
    ++taken;
  }
  EXPECT_GT(taken, 900u);
  EXPECT_LT(taken, 1100u);
  schedule.ContinueAfter({.due = Nanos(0), .session = 0, .turn = 0}, seconds(2), Nanos::max());
  for (uint64_t i = 1; i < taken; ++i) schedule.EndSession(seconds(2), false);
  EXPECT_TRUE(schedule.done());
}

TEST(Arrivals, PoissonIsAFunctionOfTheSeedWithTheAskedRate) {
  Arrivals a = Arrivals::Poisson(100, 7), b = Arrivals::Poisson(100, 7), other = Arrivals::Poisson(100, 8);
  double sum = 0, squares = 0;
  Nanos last{0};
  bool differs = false;
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i) {
    const Nanos time = *a.Next();
    EXPECT_EQ(time, *b.Next());
    differs |= time != *other.Next();
    const double gap = ToSeconds(time - last);
    EXPECT_GE(gap, 0);
    sum += gap;
    squares += gap * gap;
    last = time;
  }
  EXPECT_TRUE(differs);
  const double mean = sum / kCount;
  EXPECT_NEAR(mean, 0.01, 0.0003);
  EXPECT_NEAR(std::sqrt(squares / kCount - mean * mean), 0.01, 0.0005);  // exponential: deviation equals mean
}

TEST(Arrivals, ARateNearZeroEnds) {
  Arrivals arrivals = Arrivals::Poisson(1e-300, 1);
  EXPECT_EQ(arrivals.Next(), std::nullopt);
}

}  // namespace
}  // namespace cachalot::load
