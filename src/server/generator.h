// Generator is what the server needs of an engine: requests in, one message per step out.
// Threads:   Submit, Cancel, Drain and Stop from any thread; the sink runs on the generator's own thread and must not
//            block.
// Ownership: keeps the sink until Stop.
// Invariant: as EngineLoop: every request gets one Rejection, or one Finish per choice; nothing is delivered after
//            Stop returned.
// Cost:      that of a queue.
#pragma once

#include <functional>

#include "base/ids.h"
#include "engine/engine.h"

namespace cachalot::server {

class Generator {
 public:
  using Sink = std::function<void(engine::StepOutput)>;

  virtual ~Generator() = default;
  // Call once, before anything else.
  virtual void Start(Sink sink) = 0;
  virtual void Submit(engine::GenerateRequest request) = 0;
  virtual void Cancel(RequestId id) = 0;
  // Answered in the output of a step.
  virtual void Ask(engine::Inquiry inquiry) = 0;
  // Answered in the output of a step, perhaps many later.
  virtual void Command(engine::SessionCommand command) = 0;
  // Refuses what arrives from now on.
  virtual void Drain() = 0;
  virtual void Stop() = 0;
};

}  // namespace cachalot::server
