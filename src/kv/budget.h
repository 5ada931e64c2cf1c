// PlanBudget divides memory between weights, activations and KV, and says what the KV holds.
// Threads:   pure.
// Ownership: none.
// Invariant: weights + activations + KV never exceed what is available; the pool holds at least one full-length
//            sequence.
// Cost:      O(groups * log slots).
#pragma once

#include <cstdint>

#include "base/status.h"
#include "kv/geometry.h"

namespace cachalot::kv {

struct BudgetInputs {
  uint64_t available_bytes = 0;  // that this process may still claim, before weights are loaded
  uint64_t weight_bytes = 0;
  uint64_t activation_bytes = 0;  // of the largest step
  uint64_t kv_bytes = 0;          // asked for; 0: eight full-length sequences, at most a quarter of what is available
  uint64_t slot_bytes = 0;
  KvGeometry geometry;          // its slots are ignored
  uint64_t context_tokens = 0;  // of one full-length sequence
  uint32_t step_tokens = 0;     // most rows of one sequence in a step
};

struct BudgetPlan {
  uint32_t slots = 0;
  uint64_t kv_bytes = 0;             // slots * slot_bytes
  uint64_t tokens = 0;               // that full-length sequences hold together
  double full_length_sequences = 0;  // context_tokens each
};

// kInvalid, with numbers and what to set instead, when one full-length sequence does not fit or the total exceeds what
// is available.
Result<BudgetPlan> PlanBudget(const BudgetInputs& inputs);

}  // namespace cachalot::kv
