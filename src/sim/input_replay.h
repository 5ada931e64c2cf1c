// ReplayInputs runs an engine as the one that an input log is of, step by step, on what the log says of the world
// outside: no model, no memory, no clock.
// Threads:   a pure function; the sink is called from it.
// Ownership: takes the log.
// Invariant: with the options that were logged it makes the decisions that were made, whose text is equal to the byte.
// Cost:      that of the engine's steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "engine/decision_log.h"
#include "engine/engine.h"
#include "engine/input_log.h"

namespace cachalot::sim {

struct InputReplayReport {
  uint64_t steps = 0;
  uint64_t tokens = 0;        // that were logged
  uint64_t other_tokens = 0;  // that were asked for and are not in the log, as decisions differed
  engine::EngineStats last;
};

// `eviction`: in place of the logged one. kInvalid for a policy that there is not, kUnavailable without the addresses
// for host memory as large as the one that was logged.
Result<InputReplayReport> ReplayInputs(engine::LoggedInputs log, const std::optional<std::string>& eviction,
                                       engine::DecisionLog::Sink decisions);

}  // namespace cachalot::sim
