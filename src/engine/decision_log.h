// DecisionLog tells what the engine decides, in lines of text: what was refused and admitted, which rows ran and where
// their KV went, what was evicted, preempted, loaded, handed down and ended.
// Threads:   engine thread; so is the sink, which must not block for long.
// Ownership: owns the sink; keeps nothing of what it is told.
// Invariant: equal inputs give equal text, to the byte. A step in which nothing was decided leaves nothing.
// Cost:      text, where there is a log; nothing where there is none.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "base/page_view.h"

namespace cachalot::exec {
struct SequenceRows;
}
namespace cachalot::kv {
struct LeavingBlock;
}
namespace cachalot::sched {
struct Decision;
struct DownDecision;
}  // namespace cachalot::sched

namespace cachalot::engine {

struct StepOutput;

class DecisionLog {
 public:
  // Gets the lines of one step at a time.
  using Sink = std::function<void(std::string)>;

  explicit DecisionLog(Sink sink) : sink_(std::move(sink)) {}

  void BeginStep(Nanos now);
  void Admitted(RequestId request, uint64_t cached_tokens, uint64_t promised_slots);
  void Decided(RequestId request, const sched::Decision& decision);
  void Decided(const sched::DownDecision& decision);
  void Evicted(const kv::LeavingBlock& block);
  void Preempted(RequestId request);
  // Rows that are about to run.
  void Planned(RequestId request, uint32_t choice, const exec::SequenceRows& rows, uint32_t block_tokens);
  void EndStep(const StepOutput& output);

 private:
  const Sink sink_;
  uint64_t step_ = 0;
  Nanos now_{0};
  std::string lines_;  // of this step
};

}  // namespace cachalot::engine
