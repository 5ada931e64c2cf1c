// EngineGenerator is the Generator over a real engine: it runs the engine's thread.
// Threads:   as Generator.
// Ownership: owns the loop; borrows engine and clock, which must outlive it.
// Invariant: as Generator.
// Cost:      as EngineLoop.
#pragma once

#include <memory>

#include "base/clock.h"
#include "server/generator.h"

namespace cachalot::engine {
class EngineLoop;
}

namespace cachalot::server {

class EngineGenerator final : public Generator {
 public:
  EngineGenerator(engine::Engine& engine, Clock& clock);
  ~EngineGenerator() override;

  void Start(Sink sink) override;
  void Submit(engine::GenerateRequest request) override;
  void Cancel(RequestId id) override;
  void Ask(engine::Inquiry inquiry) override;
  void Command(engine::SessionCommand command) override;
  void Drain() override;
  void Stop() override;

 private:
  engine::Engine& engine_;
  Clock& clock_;
  std::unique_ptr<engine::EngineLoop> loop_;
};

}  // namespace cachalot::server
