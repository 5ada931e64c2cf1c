#include "sched/backlog.h"

#include <algorithm>

#include "cost/step_cost.h"
#include "cost/step_work.h"

namespace cachalot::sched {
namespace {

uint64_t RoundedUp(uint64_t amount, uint64_t part) { return amount / part + (amount % part != 0 ? 1 : 0); }

}  // namespace

double BacklogSeconds(std::span<const BacklogView> backlog, const BacklogPace& pace, const cost::WorkShape& shape,
                      const cost::StepCost& cost) {
  cost::StepWork work;
  uint64_t prompts = 0, answers = 0, longest = 0;
  for (const BacklogView& view : backlog) {
    work += shape.Rows(view.done, view.prompt, view.prompt == 0 ? 0 : 1);
    const cost::StepWork answer = shape.Rows(view.done + view.prompt, view.answer, view.answer);
    for (uint32_t i = 0; i < view.sequences; ++i) work += answer;
    prompts += view.prompt;
    answers += view.answer * view.sequences;
    longest = std::max(longest, view.answer);
  }
  const uint64_t steps = RoundedUp(prompts, std::max(pace.step_rows, 1u)) +
                         std::max(longest, RoundedUp(answers, std::max(pace.sequences, 1u)));
  return cost.Added(work) + cost.Predict({}) * static_cast<double>(steps);
}

}  // namespace cachalot::sched
