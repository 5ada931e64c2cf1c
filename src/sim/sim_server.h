// SimServer is the real engine over exec/sim, on a clock of its own: what serving simulations have in common.
// Threads:   one.
// Ownership: owns clock, memory, tiers, executor, sampler and engine.
// Invariant: the clock moves only in Step, Advance and SleepUntil. Since the first of them all its time was spent in
//            steps, waiting for transfers, or idle.
// Cost:      a step of the engine, and a few bytes per slot.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/stop_condition.h"
#include "engine/engine.h"
#include "exec/sim/sim_executor.h"
#include "exec/sim/sim_memory.h"
#include "sim/scripted_sampler.h"
#include "sim/sim_tiers.h"

namespace cachalot::sim {

// How a simulation spent its time.
struct TimeSpent {
  Nanos compute{0};
  Nanos transfers{0};  // nothing could be computed until one ended
  Nanos idle{0};       // nobody wanted anything
  Nanos total() const { return compute + transfers + idle; }
  TimeSpent operator-(const TimeSpent& earlier) const {
    return {compute - earlier.compute, transfers - earlier.transfers, idle - earlier.idle};
  }
  bool operator==(const TimeSpent&) const = default;
};

// Bytes over each link and direction.
struct BytesMoved {
  uint64_t from_pool = 0;  // to the host
  uint64_t to_pool = 0;
  uint64_t disk_read = 0;
  uint64_t disk_written = 0;
  BytesMoved operator-(const BytesMoved& earlier) const {
    return {from_pool - earlier.from_pool, to_pool - earlier.to_pool, disk_read - earlier.disk_read,
            disk_written - earlier.disk_written};
  }
  bool operator==(const BytesMoved&) const = default;
};

class SimServer {
 public:
  // kInvalid for options that make no sense, kUnavailable when there is no memory for the tables.
  static Result<std::unique_ptr<SimServer>> Make(const engine::EngineOptions& options, const exec::SimOptions& model,
                                                 uint32_t slots, const SimTierOptions& tiers = {});

  // At the clock's time, which moves on by what the step takes. Inputs are arrivals and cancels.
  engine::StepOutput Step(engine::StepInput input);
  // The same, unless nothing arrives and the engine has nothing to do: then time goes on to when it has, or to `until`,
  // and there is no output.
  std::optional<engine::StepOutput> Advance(engine::StepInput input, Nanos until);
  // Time that the engine has nothing to do.
  void SleepUntil(Nanos moment) { clock_.SleepUntil(moment); }
  Nanos now() const { return clock_.Now(); }
  const engine::Engine& engine() const { return *engine_; }
  // What requests get for answers, where it is not left to chance.
  ScriptedSampler& answers() { return answers_; }
  uint64_t slot_bytes() const { return memory_.slot_bytes(); }

  TimeSpent time() const;
  BytesMoved moved() const;

 private:
  SimServer(const exec::SimOptions& model, uint32_t slots, const SimTierOptions& tiers);
  void WaitUntil(Nanos moment);

  ManualClock clock_;
  exec::SimExecutor executor_;
  exec::SimMemory memory_;
  std::unique_ptr<SimTiers> tiers_;
  ScriptedSampler answers_;
  std::optional<engine::Engine> engine_;
  Nanos last_duration_{0};
  Nanos last_stalled_{0};
  Nanos waited_{0};             // since the last step
  Nanos idle_{0}, awaited_{0};  // of Advance, in all
};

// Each names what it is about, its value and what is allowed. Empty: valid.
std::vector<std::string> Problems(const exec::SimOptions& model, uint32_t slots, const SimTierOptions& tiers);

// An answer that ends after so many tokens.
StopConditionFactory EndAfter(uint32_t tokens);

}  // namespace cachalot::sim
