// MachineOf says on what `cachalot replay --engine` runs: whose KV, how long steps and transfers take, and why so.
// Threads:   plain data; MachineOf reads the profile and the model's config.
// Ownership: none.
// Invariant: what a flag says counts, then what the profile measured, then what is assumed.
// Cost:      that of cli/known_shape.h.
#pragma once

#include <string>

#include "base/status.h"
#include "cli/replay_options.h"
#include "exec/sim/sim_executor.h"
#include "sim/sim_tiers.h"

namespace cachalot::cli {

// Where figures are from, for people.
struct MachineFacts {
  std::string step_costs;
  std::string tier_rates;  // empty: there are no tiers
};

struct ReplayMachine {
  exec::SimOptions model;
  uint32_t kv_blocks = 0;
  sim::SimTierOptions tiers;
  MachineFacts facts;
};

Result<ReplayMachine> MachineOf(const EngineReplayOptions& options);

}  // namespace cachalot::cli
