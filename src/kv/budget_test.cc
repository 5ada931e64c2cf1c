#include "kv/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cachalot::kv {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20;

// One full group; a slot of 1 MiB holds 16 tokens, a sequence of 1,024 tokens 64 slots.
BudgetInputs Inputs() {
  BudgetInputs in;
  in.available_bytes = 4096 * kMiB;
  in.weight_bytes = 100 * kMiB;
  in.activation_bytes = 10 * kMiB;
  in.slot_bytes = kMiB;
  in.geometry = {.block_tokens = 16, .windows = {0}, .slots = 0};
  in.context_tokens = 1024;
  in.step_tokens = 512;
  return in;
}

TEST(Budget, DefaultsToEightFullLengthSequences) {
  const auto plan = PlanBudget(Inputs());
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->slots, 8u * 64);
  EXPECT_EQ(plan->kv_bytes, 512 * kMiB);
  EXPECT_EQ(plan->tokens, 8u * 1024);
  EXPECT_DOUBLE_EQ(plan->full_length_sequences, 8);
}

TEST(Budget, TheDefaultTakesAtMostAQuarterOfWhatIsAvailable) {
  BudgetInputs in = Inputs();
  in.available_bytes = 1024 * kMiB;
  const auto plan = PlanBudget(in);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->kv_bytes, 256 * kMiB);
}

TEST(Budget, ExactlyOneSequenceIsEnoughAndOneSlotLessIsNot) {
  BudgetInputs in = Inputs();
  in.kv_bytes = 64 * kMiB;
  EXPECT_TRUE(PlanBudget(in).ok());
  in.kv_bytes = 64 * kMiB - 1;
  const auto plan = PlanBudget(in);
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.status().message(), HasSubstr("needs 64 MiB"));
  EXPECT_THAT(plan.status().message(), HasSubstr("--context to at most 1008"));
}

TEST(Budget, WhereNotOneTokenFitsNoContextIsAdvised) {
  BudgetInputs in = Inputs();
  in.kv_bytes = 1;
  EXPECT_THAT(PlanBudget(in).status().message(), ::testing::EndsWith("to at least that; not one token fits"));
}

TEST(Budget, MoreThanTheMachineHasIsRefusedWithTheSum) {
  BudgetInputs in = Inputs();
  in.available_bytes = 1000 * kMiB;
  in.kv_bytes = 890 * kMiB;
  EXPECT_TRUE(PlanBudget(in).ok());
  in.kv_bytes = 891 * kMiB;
  const auto plan = PlanBudget(in);
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(plan.status().message(), HasSubstr("1001 MiB together, but only 1000 MiB are available"));
}

TEST(Budget, SlidingGroupsCountTheirWindowOnly) {
  BudgetInputs in = Inputs();
  in.geometry.windows = {0, 128, 128};
  in.available_bytes *= 2;
  const auto plan = PlanBudget(in);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->slots, 8 * PeakSlots(in.geometry, 1024, 512));
}

}  // namespace
}  // namespace cachalot::kv
