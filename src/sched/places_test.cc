#include "sched/places.h"

#include <gtest/gtest.h>

namespace cachalot::sched {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

TEST(Places, WhoeverComesBackSoonHasItsPlace) {
  Places places;
  places.Leave(7, seconds(100), seconds(40), 30);
  EXPECT_EQ(places.kept_slots(), 30u);
  places.Expire(seconds(105));
  ASSERT_TRUE(places.Knows(7));
  const Places::Return back = places.Come(7, seconds(105));
  EXPECT_TRUE(back.kept);
  EXPECT_EQ(back.since, seconds(40));
  EXPECT_FALSE(places.Knows(7));
  EXPECT_EQ(places.kept(), 0u);
  EXPECT_EQ(places.kept_slots(), 0u);
}

TEST(Places, AnOverdueOneLosesItsPlaceButTeachesItsGap) {
  Places places;
  places.Leave(7, seconds(0), seconds(0), 30);
  places.Expire(seconds(11));
  EXPECT_EQ(places.kept(), 0u);
  EXPECT_EQ(places.kept_slots(), 0u);
  ASSERT_TRUE(places.Knows(7));
  EXPECT_FALSE(places.Come(7, seconds(40)).kept);
  EXPECT_DOUBLE_EQ(places.gap_seconds(), 40);
  EXPECT_EQ(places.kept_for(), minutes(2));  // 40 + 8 x 20 seconds, but no more than that
}

TEST(Places, AreKeptForLongerTheMoreTheGapsVary) {
  const auto kept_for = [](int spread) {
    Places places;
    for (int i = 0; i < 200; ++i) {
      const Nanos now = minutes(i);
      places.Leave(1, now, now, 1);
      places.Come(1, now + milliseconds(3000 + (i % 2 == 0 ? spread : -spread)));
    }
    return ToSeconds(places.kept_for());
  };
  EXPECT_NEAR(kept_for(0), 3, 0.1);
  EXPECT_NEAR(kept_for(500), 3 + 8 * 0.5, 0.3);
  EXPECT_NEAR(kept_for(2000), 3 + 8 * 2, 1);
}

TEST(Places, WhereFewComeBackPlacesTakeLittle) {
  Places places;
  for (uint64_t i = 0; i < 1000; ++i) {
    const Nanos now = minutes(i);
    places.Expire(now);
    places.Leave(i, now, now, 100);
    if (i % 4 == 0) places.Come(i, now + seconds(5));
  }
  EXPECT_NEAR(places.return_share(), 0.25, 0.1);
  places.Expire(minutes(2000));
  places.Leave(5000, minutes(2000), minutes(2000), 1000);
  EXPECT_NEAR(static_cast<double>(places.kept_slots()), 1000 * places.return_share() / 0.75, 1);
}

TEST(Places, ANewConversationOfTheSameNameTakesThePlaceOfTheOld) {
  Places places;
  places.Leave(1, seconds(1), seconds(0), 10);
  places.Leave(1, seconds(2), seconds(0), 12);
  EXPECT_EQ(places.kept(), 1u);
  EXPECT_EQ(places.kept_slots(), 12u);
}

TEST(Places, ForgetsTheOldestWhenThereAreTooMany) {
  Places places;
  for (uint64_t key = 0; key < 5000; ++key) places.Leave(key, Nanos(key), Nanos(0), 2);
  EXPECT_EQ(places.kept(), 4096u);
  EXPECT_EQ(places.kept_slots(), 2 * 4096u);
  EXPECT_FALSE(places.Knows(903));
  EXPECT_TRUE(places.Knows(904));
  places.Expire(minutes(11));
  EXPECT_EQ(places.kept_slots(), 0u);
  EXPECT_FALSE(places.Knows(4999));
}

}  // namespace
}  // namespace cachalot::sched
