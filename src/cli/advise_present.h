// PresentOf makes of flags the way to serve that `cachalot advise` begins from.
// Threads:   reads files.
// Ownership: none.
// Invariant: what is returned can be planned and simulated.
// Cost:      that of LoadShape.
#pragma once

#include "base/status.h"
#include "cli/advise_options.h"
#include "engine/engine.h"
#include "plan/levers.h"
#include "sim/profile.h"

namespace cachalot::cli {

// kInvalid, naming the flag, for what is missing, not known or out of range.
Result<plan::Present> PresentOf(const AdviseOptions& options, const engine::EngineOptions& engine);

// What of the traffic levers depend on.
plan::TrafficFacts FactsOf(const sim::TrafficProfile& profile);

}  // namespace cachalot::cli
