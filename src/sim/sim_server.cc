#include "sim/sim_server.h"

#include <utility>

namespace cachalot::sim {
namespace {

class EndAfterTokens final : public StopCondition {
 public:
  explicit EndAfterTokens(uint32_t tokens) : left_(tokens) {}
  bool Push(TokenId) override { return --left_ == 0; }

 private:
  uint32_t left_;
};

}  // namespace

SimServer::SimServer(const engine::EngineOptions& options, const exec::SimOptions& model,
                     std::unique_ptr<exec::DeviceMemory> memory)
    : memory_(std::move(memory)), executor_(model, clock_), engine_(options, executor_, *memory_, sampler_) {}

Result<std::unique_ptr<SimServer>> SimServer::Make(const engine::EngineOptions& options, const exec::SimOptions& model,
                                                   uint32_t slots) {
  const uint64_t slot_bytes = exec::SimExecutor::LayoutFor(model).slot_bytes;
  CACHALOT_ASSIGN_OR_RETURN(std::unique_ptr<exec::DeviceMemory> memory, exec::MakeCpuMemory(slot_bytes, slots));
  return std::unique_ptr<SimServer>(new SimServer(options, model, std::move(memory)));
}

engine::StepOutput SimServer::Step(engine::StepInput input) {
  input.now = clock_.Now();
  input.last_duration = last_duration_;
  const Nanos begun = input.now;
  engine::StepOutput output = engine_.Step(std::move(input));
  last_duration_ = clock_.Now() - begun;
  return output;
}

StopConditionFactory EndAfter(uint32_t tokens) {
  return [tokens] { return std::make_unique<EndAfterTokens>(tokens); };
}

}  // namespace cachalot::sim
