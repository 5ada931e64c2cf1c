#include "kv/budget.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/units.h"

namespace cachalot::kv {
namespace {

constexpr uint64_t kDefaultSequences = 8;
constexpr uint64_t kDefaultShareOfAvailable = 4;  // a quarter

uint64_t WantedBytes(const BudgetInputs& in, uint64_t sequence_bytes) {
  if (in.kv_bytes != 0) return in.kv_bytes;
  return std::min(kDefaultSequences * sequence_bytes, in.available_bytes / kDefaultShareOfAvailable);
}

}  // namespace

Result<BudgetPlan> PlanBudget(const BudgetInputs& in) {
  const uint64_t sequence_slots =
      SlotsToPromise(in.geometry, in.context_tokens, in.context_tokens, 1, in.step_tokens).both();
  const uint64_t sequence_bytes = sequence_slots * in.slot_bytes;
  const uint64_t wanted = WantedBytes(in, sequence_bytes);
  BudgetPlan plan;
  plan.slots =
      static_cast<uint32_t>(std::min<uint64_t>(wanted / in.slot_bytes, std::numeric_limits<uint32_t>::max() - 1));
  plan.kv_bytes = plan.slots * in.slot_bytes;

  if (plan.slots < sequence_slots) {
    KvGeometry geometry = in.geometry;
    geometry.slots = plan.slots;
    const uint64_t largest = LargestSequence(geometry, in.step_tokens);
    return Invalid(
        fmt::format("the KV budget of {} is too small for one sequence of {} tokens, which needs {}: set --kv-memory "
                    "to at least that{}",
                    FormatBytes(wanted), in.context_tokens, FormatBytes(sequence_bytes),
                    largest == 0 ? "; not one token fits" : fmt::format(", or --context to at most {}", largest)));
  }
  const uint64_t fixed = in.weight_bytes + in.activation_bytes;
  if (fixed + plan.kv_bytes > in.available_bytes) {
    return Invalid(fmt::format("weights ({}), activations ({}) and KV ({}) need {} together, but only {} are available",
                               FormatBytes(in.weight_bytes), FormatBytes(in.activation_bytes),
                               FormatBytes(plan.kv_bytes), FormatBytes(fixed + plan.kv_bytes),
                               FormatBytes(in.available_bytes)));
  }
  plan.full_length_sequences = static_cast<double>(plan.slots) / static_cast<double>(sequence_slots);
  plan.tokens = static_cast<uint64_t>(plan.full_length_sequences * static_cast<double>(in.context_tokens));
  return plan;
}

}  // namespace cachalot::kv
