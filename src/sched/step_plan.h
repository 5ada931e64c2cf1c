// PlanStep decides which rows run in the next step.
// Threads:   pure.
// Ownership: none.
// Invariant: decode rows come first, then prefill chunks in the order given; no limit is exceeded; every sequence that
//            decodes runs while rows last.
// Cost:      linear in the sequences.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cachalot::sched {

// A sequence that could run.
struct RunnableView {
  uint32_t index = 0;              // of the caller's own
  bool decoding = false;           // one row, with logits; else a prompt is being computed
  uint32_t pending_rows = 1;       // prompt tokens not yet computed
  bool logits_everywhere = false;  // a prompt whose every row gives logits
  bool last_logits = true;         // the last of the pending rows gives logits
};

struct StepBudget {
  uint32_t rows = 512;           // of all sequences
  uint32_t prefill_chunk = 512;  // of one prompt
  uint32_t logit_rows = 64;
};

struct PlannedRows {
  uint32_t index = 0;  // RunnableView::index
  uint32_t rows = 0;
  uint32_t logit_rows = 0;  // of the last rows
};

std::vector<PlannedRows> PlanStep(std::span<const RunnableView> runnable, StepBudget budget);

}  // namespace cachalot::sched
