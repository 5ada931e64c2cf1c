// What `cachalot replay` can do with a trace. Figures stand by name, in the order in which they are shown.
// Threads:   pure functions, but for the files that StreamReplay reads and EngineReplay writes.
// Ownership: none.
// Invariant: the same trace and options give the same figures.
// Cost:      that of sim/block_replay.h, sim/stack_distance.h and sim/trace_serving.h.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "cli/replay_machine.h"
#include "cli/replay_options.h"
#include "cli/trace_source.h"
#include "engine/engine.h"
#include "sim/read_trace.h"
#include "sim/trace.h"
#include "sim/trace_serving.h"

namespace cachalot::cli {

// The cache and an eviction policy.
Result<Json::Object> BlockReplay(const sim::Trace& trace, const ReplayOptions& options);
// The same of requests that are read or made meanwhile and not kept. Not with the policy that looks ahead.
struct StreamReplayed {
  sim::TraceFacts trace;
  Json::Object figures;
};
Result<StreamReplayed> StreamReplay(const TraceSource& source, const ReplayOptions& options);

// One row per capacity of --curve.
Result<Json::Array> CurveReplay(const sim::Trace& trace, const ReplayOptions& options);

// The whole engine, and its state over time.
struct EngineReplayed {
  sim::TraceServingReport report;
  MachineFacts machine;
};
Result<EngineReplayed> EngineReplay(const sim::Trace& trace, const EngineReplayOptions& options,
                                    const engine::EngineOptions& engine);
Json::Object EngineFigures(const sim::TraceServingReport& report);

}  // namespace cachalot::cli
