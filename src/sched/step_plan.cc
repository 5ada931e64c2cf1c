#include "sched/step_plan.h"

#include <algorithm>

namespace cachalot::sched {
namespace {

// Rows of a prompt that may run within what is left, and how many of them give logits.
PlannedRows PlanPrefill(const RunnableView& view, const StepBudget& left) {
  PlannedRows planned{view.index, std::min({view.pending_rows, left.prefill_chunk, left.rows}), 0};
  if (view.logits_everywhere) {
    planned.rows = std::min(planned.rows, left.logit_rows);
    planned.logit_rows = planned.rows;
  } else if (planned.rows == view.pending_rows && view.last_logits) {
    if (left.logit_rows == 0) --planned.rows;  // the last row, whose logits are needed, waits for the next step
    planned.logit_rows = left.logit_rows == 0 ? 0 : 1;
  }
  return planned;
}

}  // namespace

std::vector<PlannedRows> PlanStep(std::span<const RunnableView> runnable, StepBudget budget) {
  std::vector<PlannedRows> plan;
  const auto take = [&](const PlannedRows& planned) {
    if (planned.rows == 0) return;
    budget.rows -= planned.rows;
    budget.logit_rows -= planned.logit_rows;
    plan.push_back(planned);
  };
  for (const RunnableView& view : runnable) {
    if (view.decoding && budget.rows > 0 && budget.logit_rows > 0) take({view.index, 1, 1});
  }
  for (const RunnableView& view : runnable) {
    if (!view.decoding) take(PlanPrefill(view, budget));
  }
  return plan;
}

}  // namespace cachalot::sched
