#include "sched/pressure.h"

#include <gtest/gtest.h>

namespace cachalot::sched {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Pressure, AMomentCountsForAThirdAfterItsTime) {
  Pressure pressure;
  for (int i = 0; i < 10'000; ++i) pressure.Observe(seconds(1), true, false);
  for (size_t i = 0; i < kPressureSeconds.size(); ++i) EXPECT_NEAR(pressure.levels().some.shares[i], 1, 1e-9);
  pressure.Observe(seconds(10), false, false);
  EXPECT_NEAR(pressure.levels().some.shares[0], 0.368, 1e-3);
  EXPECT_NEAR(pressure.levels().some.shares[1], 0.846, 1e-3);
  EXPECT_NEAR(pressure.levels().some.shares[2], 0.967, 1e-3);
}

TEST(Pressure, DoesNotDependOnHowTimeIsCutIntoSteps) {
  Pressure coarse, fine;
  coarse.Observe(seconds(3), true, true);
  for (int i = 0; i < 3000; ++i) fine.Observe(milliseconds(1), true, true);
  for (size_t i = 0; i < kPressureSeconds.size(); ++i) {
    EXPECT_NEAR(coarse.levels().full.shares[i], fine.levels().full.shares[i], 1e-9);
  }
}

TEST(Pressure, FullIsAlsoSomeAndTotalsAddUp) {
  Pressure pressure;
  pressure.Observe(seconds(1), true, false);
  pressure.Observe(seconds(2), true, true);
  pressure.Observe(seconds(4), false, false);
  EXPECT_EQ(pressure.levels().some.total, seconds(3));
  EXPECT_EQ(pressure.levels().full.total, seconds(2));
  for (size_t i = 0; i < kPressureSeconds.size(); ++i) {
    EXPECT_LT(pressure.levels().full.shares[i], pressure.levels().some.shares[i]);
  }
}

}  // namespace
}  // namespace cachalot::sched
