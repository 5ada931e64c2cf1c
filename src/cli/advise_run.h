// AdviseRun simulates settings on a trace with the server's engine, several at a time.
// Threads:   one caller; threads of its own inside.
// Ownership: owns its traces; borrows nothing.
// Invariant: equal traces and settings give equal outcomes, however many threads there are.
// Cost:      that of sim/trace_serving.h, per setting.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "plan/setting.h"
#include "sim/trace.h"
#include "sim/trace_serving.h"

namespace cachalot::cli {

class AdviseRun {
 public:
  struct Options {
    engine::EngineOptions engine;  // of what a setting does not say
    double rate = 1;               // requests come so much faster than the trace says
    uint32_t threads = 0;          // simulations at once; 0: as many as there are processors
  };

  // `reordered`: the same requests with what they have in common first; empty where nothing is known of that.
  AdviseRun(sim::Trace trace, sim::Trace reordered, const Options& options);

  // Outcomes in the order of the settings. kInvalid when one cannot be simulated.
  Result<std::vector<plan::Outcome>> operator()(std::span<const plan::Setting> settings) const;

 private:
  Result<plan::Outcome> Simulate(const plan::Setting& setting) const;

  const sim::Trace trace_, reordered_;
  const Options options_;
};

// How a simulation of that setting is to be run.
sim::TraceServingOptions ServingOf(const plan::Setting& setting, const AdviseRun::Options& options);

}  // namespace cachalot::cli
