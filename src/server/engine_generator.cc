#include "server/engine_generator.h"

#include <utility>

#include "engine/engine_loop.h"

namespace cachalot::server {

EngineGenerator::EngineGenerator(engine::Engine& engine, Clock& clock) : engine_(engine), clock_(clock) {}
EngineGenerator::~EngineGenerator() = default;

void EngineGenerator::Start(Sink sink) {
  loop_ = std::make_unique<engine::EngineLoop>(engine_, clock_, std::move(sink));
}

void EngineGenerator::Submit(engine::GenerateRequest request) { loop_->Submit(std::move(request)); }
void EngineGenerator::Cancel(RequestId id) { loop_->Cancel(id); }
void EngineGenerator::Ask(engine::Inquiry inquiry) { loop_->Ask(std::move(inquiry)); }
void EngineGenerator::Command(engine::SessionCommand command) { loop_->Command(std::move(command)); }
void EngineGenerator::Drain() { loop_->Drain(); }
void EngineGenerator::Stop() { loop_->Stop(); }

}  // namespace cachalot::server
