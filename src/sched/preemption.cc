#include "sched/preemption.h"

namespace cachalot::sched {

std::optional<uint32_t> ChooseVictim(std::span<const VictimView> running) {
  std::optional<uint32_t> best;
  for (uint32_t i = 0; i < running.size(); ++i) {
    const VictimView& view = running[i];
    if (!view.preemptible || view.freed_slots == 0) continue;
    // recompute / freed <= that of the best so far
    if (!best ||
        view.recompute_tokens * running[*best].freed_slots <= running[*best].recompute_tokens * view.freed_slots) {
      best = i;
    }
  }
  return best;
}

}  // namespace cachalot::sched
