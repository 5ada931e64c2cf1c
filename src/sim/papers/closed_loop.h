// ServeClosedLoop runs the real engine in virtual time over requests of given lengths, of which so many are in it at
// once: when one has its answer, the next comes.
// Threads:   a pure function.
// Ownership: none.
// Invariant: equal options give equal reports; no two prompts share anything; every request is answered.
// Cost:      that of the engine's steps.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/duration_histogram.h"
#include "base/random.h"
#include "base/status.h"
#include "engine/engine.h"
#include "exec/sim/sim_executor.h"

namespace cachalot::sim {

struct RequestLengths {
  uint32_t prompt_tokens = 1;
  uint32_t output_tokens = 1;
};

// Log-normal lengths.
struct LengthLaw {
  double mean = 1;
  double variation = 1;  // deviation over mean
  uint32_t Draw(SplitMix64& random, uint32_t most) const;
};

struct ClosedLoopOptions {
  engine::EngineOptions engine;
  exec::SimOptions model;
  uint32_t slots = 4096;
  uint32_t concurrency = 64;  // requests that run or wait
  uint32_t max_tokens = 0;    // that each asks for, at least as many as its answer has
  std::vector<RequestLengths> requests;
  // Told of each step: when it began and what it left. May be empty.
  std::function<void(Nanos begun, Nanos ended, const engine::EngineStats& stats)> on_step;
};

struct ClosedLoopReport {
  DurationHistogram ttft, itl;
  uint64_t output_tokens = 0;
  Nanos duration{0};
  engine::EngineStats last;
};

// kInvalid when the options make no sense together or a request can't be served.
Result<ClosedLoopReport> ServeClosedLoop(const ClosedLoopOptions& options);

}  // namespace cachalot::sim
