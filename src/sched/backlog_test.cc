#include "sched/backlog.h"

#include <vector>

#include <gtest/gtest.h>

#include "cost/step_cost.h"
#include "cost/step_work.h"

namespace cachalot::sched {
namespace {

const std::vector<uint32_t> kWindows = {0};
const cost::WorkShape kShape(kWindows);
const cost::StepCost kCost(StepCurve{0.5, 0.01, 0, 0, 0.1});

TEST(Backlog, CountsRowsLogitsAndSteps) {
  // 100 rows in 2 steps, with one row of logits; then 20 steps of one row with logits each.
  const BacklogView one[] = {{.done = 50, .prompt = 100, .answer = 20}};
  EXPECT_NEAR(BacklogSeconds(one, {64, 1}, kShape, kCost), 100 * .01 + .1 + 2 * .5 + 20 * (.5 + .01 + .1), 1e-9);
}

TEST(Backlog, SequencesThatGenerateSideBySideShareTheirSteps) {
  const std::vector<BacklogView> four(4, {.answer = 20});
  EXPECT_NEAR(BacklogSeconds(four, {64, 1}, kShape, kCost), 80 * (.5 + .11), 1e-9);
  EXPECT_NEAR(BacklogSeconds(four, {64, 4}, kShape, kCost), 80 * .11 + 20 * .5, 1e-9);
  EXPECT_NEAR(BacklogSeconds(four, {64, 9}, kShape, kCost), 80 * .11 + 20 * .5, 1e-9);  // none is shorter than itself
  const BacklogView forks[] = {{.answer = 20, .sequences = 4}};
  EXPECT_NEAR(BacklogSeconds(forks, {64, 4}, kShape, kCost), 80 * .11 + 20 * .5, 1e-9);
}

TEST(Backlog, DeepRowsSeeMore) {
  const cost::StepCost attention(StepCurve{0, 0, 1e-3, 0, 0});
  const BacklogView deep[] = {{.done = 1000, .prompt = 10, .answer = 0}};
  EXPECT_NEAR(BacklogSeconds(deep, {}, kShape, attention), (1001 + 1010) / 2.0 * 10 * 1e-3, 0.05);
}

TEST(Backlog, NothingTakesNoTime) { EXPECT_EQ(BacklogSeconds({}, {0, 0}, kShape, kCost), 0); }

}  // namespace
}  // namespace cachalot::sched
