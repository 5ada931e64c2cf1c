// EngineLoop is the engine thread: it feeds messages of other threads into Engine::Step and hands its outputs on.
// Threads:   Submit, Cancel, Ask, Command, Drain and Stop may be called from any thread; the sink runs on the engine
//            thread, for every step that ran the model or has something to say, and must not block.
// Ownership: owns the thread; borrows engine and clock.
// Invariant: messages of one caller are seen in order; nothing is delivered after Stop returned.
// Cost:      sleeps while there is nothing to do.
#pragma once

#include <functional>
#include <memory>

#include "engine/engine.h"

namespace cachalot::engine {

class EngineLoop {
 public:
  using Sink = std::function<void(StepOutput)>;

  EngineLoop(Engine& engine, Clock& clock, Sink sink);
  ~EngineLoop();  // Stop()

  // Ids must be unique over the life of the loop.
  void Submit(GenerateRequest request);
  void Cancel(RequestId id);
  void Ask(Inquiry inquiry);
  void Command(SessionCommand command);
  // Refuses new requests; returns at once.
  void Drain();
  // Ends the thread after the step in flight. What still runs gets no further event.
  void Stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// For an engine whose loop was stopped: writes what its last requests left behind to lower tiers, for as long as
// `limit`. False when some of it is left, or requests still run.
bool WriteLeftBehind(Engine& engine, Clock& clock, Nanos limit);

}  // namespace cachalot::engine
