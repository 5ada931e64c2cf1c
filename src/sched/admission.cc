#include "sched/admission.h"

namespace cachalot::sched {

Verdict Admit(const CandidateView& candidate, const CapacityView& capacity) {
  if (candidate.prompt_tokens + candidate.max_tokens > capacity.context_tokens) return Verdict::kContextTooLong;
  if (candidate.sequences > capacity.max_sequences) return Verdict::kTooManySequences;
  if (candidate.peak_slots > capacity.total_slots) return Verdict::kPoolTooSmall;
  const bool fits = candidate.charge_slots + capacity.taken_slots <= capacity.total_slots &&
                    candidate.sequences + capacity.running_sequences <= capacity.max_sequences;
  return fits ? Verdict::kAdmit : Verdict::kWait;
}

}  // namespace cachalot::sched
