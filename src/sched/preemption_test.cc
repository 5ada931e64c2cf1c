#include "sched/preemption.h"

#include <gtest/gtest.h>

namespace cachalot::sched {
namespace {

TEST(Preemption, LosesTheLeastWorkPerSlot) {
  const VictimView running[] = {{true, 10, 160}, {true, 2, 20}, {true, 10, 200}};
  EXPECT_EQ(ChooseVictim(running), 1u);
}

TEST(Preemption, OfEqualsTheYoungest) {
  const VictimView running[] = {{true, 10, 160}, {true, 5, 80}, {true, 20, 321}};
  EXPECT_EQ(ChooseVictim(running), 1u);
}

TEST(Preemption, ProtectedOnesAndThoseThatFreeNothingStay) {
  const VictimView running[] = {{false, 10, 1}, {true, 0, 0}, {true, 1, 1000}};
  EXPECT_EQ(ChooseVictim(running), 2u);
  EXPECT_EQ(ChooseVictim(std::span(running).first(2)), std::nullopt);
  EXPECT_EQ(ChooseVictim({}), std::nullopt);
}

}  // namespace
}  // namespace cachalot::sched
