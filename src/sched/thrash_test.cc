#include "sched/thrash.h"

#include <gtest/gtest.h>

namespace cachalot::sched {
namespace {

using std::chrono::seconds;

constexpr uint64_t kPool = 3200;

// Seconds of a server on which conversations of 100 slots run a second and are away for two; 32 of them fit.
class Server {
 public:
  explicit Server(double gap_seconds = 2) : gap_seconds_(gap_seconds) {}

  void Run(int count, double refault_share, bool wait, uint64_t taken, uint32_t outside = 0, uint32_t finished = 2) {
    for (int i = 0; i < count; ++i) {
      now_ += seconds(1);
      thrash.Observe({.now = now_,
                      .computed_tokens = 1000,
                      .refault_tokens = static_cast<uint64_t>(1000 * refault_share),
                      .finished = finished,
                      .ran = finished * Nanos(seconds(1)),
                      .held_slots = finished * uint64_t{100},
                      .gap_seconds = gap_seconds_,
                      .taken_slots = taken,
                      .outside = outside,
                      .some_wait = wait});
    }
  }
  Thrash thrash{kPool};

 private:
  const double gap_seconds_;
  Nanos now_{0};
};

TEST(Thrash, RefaultsWhileRequestsWaitBringALimitBelowWhatFits) {
  Server server;
  server.Run(100, 0.5, true, 9000, 5);
  ASSERT_TRUE(server.thrash.limit());
  EXPECT_EQ(*server.thrash.limit(), kPool * 9 / 10);
  EXPECT_EQ(server.thrash.decreases(), 1u);
  EXPECT_NEAR(server.thrash.refault_share(), 0.5, 0.01);
}

TEST(Thrash, RefaultsHarmNobodyWhereNobodyWaits) {
  Server server;
  server.Run(1000, 0.9, false, 9000);
  EXPECT_FALSE(server.thrash.limit());
}

TEST(Thrash, WaitingAloneIsNotThrash) {
  Server server;
  server.Run(1000, 0.01, true, 9000);
  EXPECT_FALSE(server.thrash.limit());
}

TEST(Thrash, NoLimitComesUpWhereThoseThatFitWouldNotGetThroughFaster) {
  Server server(60);
  server.Run(1000, 0.9, true, 9000, 0, 1);  // 32 conversations a minute at most; 60 get through
  EXPECT_FALSE(server.thrash.limit());
}

// All would go through in time, but what they compute is new: nearly as much would be left to do.
TEST(Thrash, NoLimitComesUpWhereLittleIsComputedInVain) {
  Server server;
  server.Run(1000, 0.3, true, 9000, 5);
  EXPECT_FALSE(server.thrash.limit());
  server.Run(100, 0.4, true, 9000, 5);
  EXPECT_TRUE(server.thrash.limit());
}

TEST(Thrash, ADecreaseIsFollowedByAnotherOnlyOnceItShows) {
  Server server;
  server.Run(100, 0.5, true, 9000, 5);
  server.Run(300, 0.5, true, 9000, 5);  // those that have a place are still there
  EXPECT_EQ(server.thrash.decreases(), 1u);
  server.Run(31, 0.5, true, 2800, 5);
  EXPECT_EQ(server.thrash.decreases(), 2u);
  EXPECT_EQ(*server.thrash.limit(), 2520u);
}

TEST(Thrash, InCalmTheLimitRisesStepByStepWhileRequestsAreOutside) {
  Server server;
  server.Run(100, 0.5, true, 9000, 5);
  server.Run(60, 0, true, 2800, 0);
  const uint64_t before = *server.thrash.limit();
  server.Run(300, 0, true, 2800, 5);
  EXPECT_GE(*server.thrash.limit(), before + 4 * (kPool / 32));
  EXPECT_LE(*server.thrash.limit(), before + 10 * (kPool / 32));
}

TEST(Thrash, BetweenCalmAndThrashNothingMoves) {
  Server server;
  server.Run(100, 0.5, true, 9000, 5);
  server.Run(300, 0.035, true, 2800, 5);
  const uint64_t before = *server.thrash.limit();
  server.Run(1000, 0.035, true, 2800, 5);
  EXPECT_EQ(*server.thrash.limit(), before);
}

TEST(Thrash, ALimitThatNobodyNeedsGoesAfterAMinute) {
  Server server;
  server.Run(100, 0.5, true, 9000, 5);
  server.Run(59, 0, false, 100);
  EXPECT_TRUE(server.thrash.limit());
  server.Run(3, 0, false, 100);
  EXPECT_FALSE(server.thrash.limit());
}

TEST(Thrash, EqualObservationsGiveEqualLimits) {
  Server a, b;
  for (Server* server : {&a, &b}) {
    server->Run(200, 0.4, true, 5000, 3);
    server->Run(100, 0.01, true, 2000, 3);
  }
  EXPECT_EQ(a.thrash.limit(), b.thrash.limit());
  EXPECT_EQ(a.thrash.refault_share(), b.thrash.refault_share());
}

}  // namespace
}  // namespace cachalot::sched
