// ChooseVictim says which running request gives up its KV when a step needs more than there is.
// Threads:   pure.
// Ownership: none.
// Invariant: never one that is not preemptible; deterministic.
// Cost:      linear.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace cachalot::sched {

struct VictimView {
  bool preemptible = true;
  uint64_t freed_slots = 0;      // that nobody else uses
  double recompute_seconds = 0;  // at worst
};

// An index into `running`, which is in the order of admission: least time lost per slot that is won, of equals the
// youngest. None when nothing can be won.
std::optional<uint32_t> ChooseVictim(std::span<const VictimView> running);

}  // namespace cachalot::sched
