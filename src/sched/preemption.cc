#include "sched/preemption.h"

namespace cachalot::sched {

std::optional<uint32_t> ChooseVictim(std::span<const VictimView> running) {
  std::optional<uint32_t> best;
  for (uint32_t i = 0; i < running.size(); ++i) {
    const VictimView& view = running[i];
    if (!view.preemptible || view.freed_slots == 0) continue;
    const auto seconds_per_slot = [](const VictimView& v) {
      return v.recompute_seconds / static_cast<double>(v.freed_slots);
    };
    if (!best || seconds_per_slot(view) <= seconds_per_slot(running[*best])) best = i;
  }
  return best;
}

}  // namespace cachalot::sched
