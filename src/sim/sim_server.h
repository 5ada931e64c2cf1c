// SimServer is the real engine over exec/sim, on a clock of its own: what serving simulations have in common.
// Threads:   one.
// Ownership: owns clock, memory, executor and engine.
// Invariant: the clock moves only in Step and SleepUntil.
// Cost:      a step of the engine, and a few bytes per slot.
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/status.h"
#include "base/stop_condition.h"
#include "engine/engine.h"
#include "exec/device_memory.h"
#include "exec/sampler.h"
#include "exec/sim/sim_executor.h"

namespace cachalot::sim {

class SimServer {
 public:
  // kUnavailable when there is no memory for so many slots of a few bytes.
  static Result<std::unique_ptr<SimServer>> Make(const engine::EngineOptions& options, const exec::SimOptions& model,
                                                 uint32_t slots);

  // At the clock's time, which moves on by what the step takes. Inputs are arrivals and cancels.
  engine::StepOutput Step(engine::StepInput input);
  void SleepUntil(Nanos moment) { clock_.SleepUntil(moment); }
  Nanos now() const { return clock_.Now(); }
  const engine::Engine& engine() const { return engine_; }

 private:
  SimServer(const engine::EngineOptions& options, const exec::SimOptions& model,
            std::unique_ptr<exec::DeviceMemory> memory);

  ManualClock clock_;
  std::unique_ptr<exec::DeviceMemory> memory_;
  exec::SimExecutor executor_;
  exec::Sampler sampler_ = exec::SimSampler();
  engine::Engine engine_;
  Nanos last_duration_{0};
};

// An answer that ends after so many tokens.
StopConditionFactory EndAfter(uint32_t tokens);

}  // namespace cachalot::sim
