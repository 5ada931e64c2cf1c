#include "sched/promotion.h"

#include <deque>

#include <gtest/gtest.h>

#include "base/random.h"

namespace cachalot::sched {
namespace {

using Ids = std::vector<PromotionId>;

PromotionId Request(uint64_t id) { return PromotionId(id); }

TEST(Promotion, AdmitsTheOldestWhileTheyFit) {
  Promotion promotion(100);
  promotion.Enter(Request(1), 60, Nanos(30));
  promotion.Enter(Request(2), 40, Nanos(10));
  promotion.Enter(Request(3), 1, Nanos(40));
  EXPECT_EQ(promotion.Admit(), (Ids{Request(2), Request(1)}));
  EXPECT_EQ(promotion.in_flight_bytes(), 100u);
  EXPECT_TRUE(promotion.InFlight(Request(1)));
  EXPECT_FALSE(promotion.InFlight(Request(3)));
  EXPECT_FALSE(promotion.InFlight(Request(4)));
  EXPECT_EQ(promotion.Admit(), Ids{});
  EXPECT_TRUE(promotion.Leave(Request(2)));
  EXPECT_EQ(promotion.Admit(), Ids{Request(3)});
  EXPECT_EQ(promotion.in_flight(), 2u);
}

TEST(Promotion, NobodyPassesALargeOneThatHasWaitedLonger) {
  Promotion promotion(100);
  promotion.Enter(Request(1), 50, Nanos(1));
  EXPECT_EQ(promotion.Admit(), Ids{Request(1)});
  promotion.Enter(Request(2), 80, Nanos(2));
  promotion.Enter(Request(3), 10, Nanos(3));
  EXPECT_EQ(promotion.Admit(), Ids{});
  promotion.Leave(Request(1));
  EXPECT_EQ(promotion.Admit(), (Ids{Request(2), Request(3)}));
}

TEST(Promotion, OneThatIsLargerThanTheLimitComesUpAlone) {
  Promotion promotion(100);
  promotion.Enter(Request(1), 10, Nanos(1));
  promotion.Enter(Request(2), UINT64_MAX, Nanos(2));
  promotion.Enter(Request(3), 10, Nanos(3));
  EXPECT_EQ(promotion.Admit(), Ids{Request(1)});
  promotion.Leave(Request(1));
  EXPECT_EQ(promotion.Admit(), Ids{Request(2)});
  EXPECT_EQ(promotion.Admit(), Ids{});
  promotion.Leave(Request(2));
  EXPECT_EQ(promotion.Admit(), Ids{Request(3)});
}

TEST(Promotion, WhoIsGivenUpLeavesNothingBehind) {
  Promotion promotion(100);
  promotion.Enter(Request(1), 100, Nanos(1));
  promotion.Enter(Request(2), 100, Nanos(2));
  promotion.Admit();
  EXPECT_TRUE(promotion.Leave(Request(2)));  // while it waits
  EXPECT_TRUE(promotion.Leave(Request(1)));  // while it comes up
  EXPECT_FALSE(promotion.Leave(Request(1)));
  EXPECT_EQ(promotion.in_flight_bytes(), 0u);
  EXPECT_EQ(promotion.waiting() + promotion.in_flight(), 0u);
  promotion.Enter(Request(1), 100, Nanos(3));  // and may come again
  EXPECT_EQ(promotion.Admit(), Ids{Request(1)});
}

// A pool that holds ten sessions and evicts what came up first and nobody has taken; each admitted one takes its turn
// to be loaded and then to run.
TEST(Promotion, AThousandWhoReturnAtOnceDoNotEvictEachOther) {
  constexpr uint64_t kSession = 7, kPool = 10 * kSession;
  Promotion promotion(kPool / 2);
  SplitMix64 random(1);
  for (uint64_t id = 0; id < 1000; ++id) promotion.Enter(Request(id), kSession, Nanos(static_cast<int64_t>(id)));
  std::deque<PromotionId> up;
  uint64_t ran = 0, most = 0;
  while (promotion.waiting() + promotion.in_flight() > 0) {
    for (const PromotionId id : promotion.Admit()) up.push_back(id);
    most = std::max<uint64_t>(most, up.size());
    ASSERT_LE(up.size() * kSession, kPool);  // no room has to be made among them
    ASSERT_FALSE(up.empty());
    const auto taken = up.begin() + static_cast<std::ptrdiff_t>(random.Below(up.size()));
    EXPECT_TRUE(promotion.Leave(*taken));
    up.erase(taken);
    ++ran;
  }
  EXPECT_EQ(ran, 1000u);
  EXPECT_EQ(most, kPool / 2 / kSession);
}

TEST(LookAhead, CountsWhoFitsThePool) {
  const std::vector<uint64_t> queued = {30, 40, 50, 10};
  EXPECT_EQ(LookAheadOf(queued, 100), 2u);  // 30 + 40; nobody passes the third
  EXPECT_EQ(LookAheadOf(queued, 1000), 4u);
  EXPECT_EQ(LookAheadOf(queued, 0), 0u);
  EXPECT_EQ(LookAheadOf({}, 100), 0u);
  const std::vector<uint64_t> huge = {UINT64_MAX, UINT64_MAX};
  EXPECT_EQ(LookAheadOf(huge, UINT64_MAX), 1u);
}

}  // namespace
}  // namespace cachalot::sched
