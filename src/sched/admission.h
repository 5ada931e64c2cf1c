// Admit decides whether a waiting request may run now, must wait, or can never run; FirstExcess whether a cap stands in
// its way.
// Threads:   pure.
// Ownership: none.
// Invariant: what is admitted can finish: its peak is promised before it starts.
// Cost:      O(1).
#pragma once

#include <cstdint>
#include <optional>

#include "base/tenant.h"

namespace cachalot::sched {

struct CandidateView {
  uint64_t prompt_tokens = 0;
  uint64_t max_tokens = 0;  // output, per sequence
  uint32_t sequences = 1;
  uint64_t peak_slots = 0;    // that it needs at most, all sequences together, in an empty pool
  uint64_t charge_slots = 0;  // that it would add now to those taken
};

struct CapacityView {
  uint64_t context_tokens = 0;  // of the model
  uint64_t total_slots = 0;
  uint64_t taken_slots = 0;  // in use by running requests, or promised to them
  uint32_t max_sequences = 0;
  uint32_t running_sequences = 0;
};

enum class Verdict : uint8_t {
  kAdmit,
  kWait,              // would fit an emptier pool
  kContextTooLong,    // never: beyond the model's context
  kPoolTooSmall,      // never: beyond the whole pool
  kTooManySequences,  // never: more sequences than may run at once
};

Verdict Admit(const CandidateView& candidate, const CapacityView& capacity);

// Whether there is room for the candidate's charge and its sequences now.
bool FitsNow(const CandidateView& candidate, const CapacityView& capacity);

enum class LoadPart : uint8_t { kContext, kOutput, kSequences, kBlocks };

struct Excess {
  LoadPart part = LoadPart::kContext;
  uint64_t needed = 0;
  uint64_t allowed = 0;
};

// What of `load` exceeds its cap together with what is `held`, if anything does.
std::optional<Excess> FirstExcess(const Load& load, const Load& held, const Load& caps);

}  // namespace cachalot::sched
