// BacklogSeconds predicts how long all that runs and waits will take to be answered.
// Threads:   pure.
// Ownership: none.
// Invariant: more work never takes less time.
// Cost:      linear in the requests and their sequences.
#pragma once

#include <cstdint>
#include <span>

namespace cachalot::cost {
class StepCost;
class WorkShape;
}  // namespace cachalot::cost

namespace cachalot::sched {

struct BacklogView {
  uint64_t done = 0;    // tokens whose KV is there, or will be found
  uint64_t prompt = 0;  // tokens after them, to be computed before the answer begins
  uint64_t answer = 0;  // tokens that each of its sequences will likely generate
  uint32_t sequences = 1;
};

struct BacklogPace {
  uint32_t step_rows = 512;  // of prompts, in one step
  uint32_t sequences = 1;    // that generate side by side
};

double BacklogSeconds(std::span<const BacklogView> backlog, const BacklogPace& pace, const cost::WorkShape& shape,
                      const cost::StepCost& cost);

}  // namespace cachalot::sched
