#include "sched/admission.h"

namespace cachalot::sched {

Verdict Admit(const CandidateView& candidate, const CapacityView& capacity) {
  if (candidate.prompt_tokens + candidate.max_tokens > capacity.context_tokens) return Verdict::kContextTooLong;
  if (candidate.sequences > capacity.max_sequences) return Verdict::kTooManySequences;
  if (candidate.peak_slots > capacity.total_slots) return Verdict::kPoolTooSmall;
  return FitsNow(candidate, capacity) ? Verdict::kAdmit : Verdict::kWait;
}

bool FitsNow(const CandidateView& candidate, const CapacityView& capacity) {
  return candidate.charge_slots + capacity.taken_slots <= capacity.total_slots &&
         candidate.sequences + capacity.running_sequences <= capacity.max_sequences;
}

std::optional<Excess> FirstExcess(const Load& load, const Load& held, const Load& caps) {
  const Excess parts[] = {
      {LoadPart::kContext, held.context_tokens + load.context_tokens, caps.context_tokens},
      {LoadPart::kOutput, held.output_tokens + load.output_tokens, caps.output_tokens},
      {LoadPart::kSequences, held.sequences + load.sequences, caps.sequences},
      {LoadPart::kBlocks, held.kv_blocks + load.kv_blocks, caps.kv_blocks},
  };
  for (const Excess& part : parts) {
    if (part.allowed != 0 && part.needed > part.allowed) return part;
  }
  return std::nullopt;
}

}  // namespace cachalot::sched
