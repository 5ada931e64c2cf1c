// ReplayInputs runs an engine as the one that an input log is of, step by step, on what the log says of the world
// outside: no model, no memory, no clock.
// Threads:   a pure function; the log's source and the sink are called from it.
// Ownership: none.
// Invariant: with the options that were logged it makes the decisions that were made, whose text is equal to the byte.
// Cost:      that of the engine's steps; memory for one step, and for what was sampled of requests that run. With
//            another policy, all steps and tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "engine/decision_log.h"
#include "engine/engine.h"
#include "engine/input_log_reader.h"

namespace cachalot::sim {

struct InputReplayReport {
  uint64_t steps = 0;
  uint64_t tokens = 0;        // that were logged
  uint64_t other_tokens = 0;  // that were asked for and are not in the log, as decisions differed
  engine::EngineStats last;
  Status damage;  // why the steps are not all, as InputLogReader::Next says it
};

// In place of the logged one. Decisions then differ, and tokens are asked for before their time: all of the log is
// held.
struct OtherPolicy {
  std::string eviction;
  uint64_t most_log_bytes = uint64_t{4} << 30;
};

// kInvalid for a policy that there is not, or a log that is too large to be held; kUnavailable without the addresses
// for host memory as large as the one that was logged.
Result<InputReplayReport> ReplayInputs(engine::InputLogReader& log, const std::optional<OtherPolicy>& other,
                                       engine::DecisionLog::Sink decisions);

}  // namespace cachalot::sim
