#include "sched/step_plan.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace cachalot::sched {
namespace {

bool operator==(const PlannedRows& a, const PlannedRows& b) {
  return a.index == b.index && a.rows == b.rows && a.logit_rows == b.logit_rows;
}

TEST(StepPlan, DecodeRowsComeBeforePrefillWhateverTheOrder) {
  const RunnableView views[] = {{0, false, 100}, {1, true}, {2, true}};
  const auto plan = PlanStep(views, {.rows = 50, .prefill_chunk = 512, .logit_rows = 8});
  ASSERT_EQ(plan.size(), 3u);
  EXPECT_TRUE((plan[0] == PlannedRows{1, 1, 1}));
  EXPECT_TRUE((plan[1] == PlannedRows{2, 1, 1}));
  EXPECT_TRUE((plan[2] == PlannedRows{0, 48, 0}));
}

TEST(StepPlan, OnlyTheLastChunkOfAPromptGivesLogits) {
  const RunnableView views[] = {{0, false, 100}};
  EXPECT_TRUE((PlanStep(views, {.rows = 512, .prefill_chunk = 64, .logit_rows = 8})[0] == PlannedRows{0, 64, 0}));
  EXPECT_TRUE((PlanStep(views, {.rows = 512, .prefill_chunk = 100, .logit_rows = 8})[0] == PlannedRows{0, 100, 1}));
}

TEST(StepPlan, RowsThatOnlyLeadToBlocksBeingLoadedGiveNone) {
  const RunnableView views[] = {{.pending_rows = 100, .last_logits = false}};
  EXPECT_TRUE((PlanStep(views, {.rows = 512, .prefill_chunk = 100, .logit_rows = 8})[0] == PlannedRows{0, 100, 0}));
}

TEST(StepPlan, APromptWithLogitsEverywhereIsBoundByTheLogitRows) {
  const RunnableView views[] = {{7, true}, {0, false, 100, true}};
  const auto plan = PlanStep(views, {.rows = 512, .prefill_chunk = 512, .logit_rows = 9});
  EXPECT_TRUE((plan[1] == PlannedRows{0, 8, 8}));
}

TEST(StepPlan, ThePromptsLastRowWaitsWhenNoLogitRowIsLeft) {
  const RunnableView views[] = {{7, true}, {0, false, 100}};
  const auto plan = PlanStep(views, {.rows = 512, .prefill_chunk = 512, .logit_rows = 1});
  EXPECT_TRUE((plan[1] == PlannedRows{0, 99, 0}));
}

TEST(StepPlan, RandomPlansRespectEveryLimitAndWasteNoRow) {
  std::mt19937 random(7);
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  for (int round = 0; round < 2000; ++round) {
    std::vector<RunnableView> views;
    for (uint32_t i = 0; i < 1 + below(40); ++i) views.push_back({i, below(2) == 0, 1 + below(300), below(4) == 0});
    const StepBudget budget{1 + below(256), 1 + below(256), 1 + below(64)};
    uint32_t rows = 0, logit_rows = 0;
    const auto plan = PlanStep(views, budget);
    ASSERT_FALSE(plan.empty());
    for (const PlannedRows& p : plan) {
      const RunnableView& view = views[p.index];
      ASSERT_GE(p.rows, 1u);
      ASSERT_LE(p.rows, view.decoding ? 1 : std::min(budget.prefill_chunk, view.pending_rows));
      const bool ends_prompt = !view.decoding && p.rows == view.pending_rows;
      ASSERT_EQ(p.logit_rows, view.decoding ? 1 : view.logits_everywhere ? p.rows : ends_prompt ? 1 : 0);
      rows += p.rows;
      logit_rows += p.logit_rows;
    }
    ASSERT_LE(rows, budget.rows);
    ASSERT_LE(logit_rows, budget.logit_rows);
  }
}

}  // namespace
}  // namespace cachalot::sched
