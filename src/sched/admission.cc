#include "sched/admission.h"

namespace cachalot::sched {

Verdict Admit(const CandidateView& candidate, const CapacityView& capacity) {
  if (candidate.prompt_tokens + candidate.max_tokens > capacity.context_tokens) return Verdict::kContextTooLong;
  if (candidate.sequences > capacity.max_sequences) return Verdict::kTooManySequences;
  if (candidate.peak_slots > capacity.total_slots) return Verdict::kPoolTooSmall;
  const bool fits = candidate.peak_slots <= capacity.total_slots - capacity.promised_slots &&
                    candidate.sequences <= capacity.max_sequences - capacity.running_sequences;
  return fits ? Verdict::kAdmit : Verdict::kWait;
}

}  // namespace cachalot::sched
