// Settings of a replay, and replays of one trace with many of them.
// Threads:   SweepReplay runs replays on threads of its own; the rest are pure functions.
// Ownership: none.
// Invariant: rows of a sweep stand in the order of its combinations, the last setting changing fastest.
// Cost:      that of the replays.
#pragma once

#include <optional>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/option_rules.h"
#include "cli/replay_inputs.h"
#include "cli/replay_machine.h"
#include "cli/replay_options.h"
#include "cli/trace_source.h"
#include "engine/engine.h"
#include "sim/trace.h"
#include "sim/trace_serving.h"

namespace cachalot::cli {

struct ReplaySettings {
  TraceSource source;
  ReplayOptions replay;
  EngineReplayOptions with_engine;
  engine::EngineOptions engine;
  InputReplayOptions inputs;
  GivenOptions given;  // modes that were switched off are not
};

// False when --help was asked for and printed.
Result<bool> ReadSettings(const Arguments& arguments, ReplaySettings* settings);

// Settings that it varies; of a sweep that makes no sense, perhaps too few.
GivenOptions NamesInSweep(std::string_view sweep);

// One replay: its figures, and with the engine what happened over time.
struct Replayed {
  Json::Object figures;
  std::optional<sim::TraceServingReport> served;
  MachineFacts machine;  // of the engine
};
Result<Replayed> Replay(const sim::Trace& trace, const ReplaySettings& settings);

// One per combination of what settings.replay.sweep lists, each a row that begins with what was varied. Where that
// changes the trace, it is loaded anew.
Result<Json::Array> SweepReplay(const sim::Trace& trace, const Arguments& arguments, const ReplaySettings& settings);

}  // namespace cachalot::cli
