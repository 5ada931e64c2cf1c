// What a scheduling step costs beside the model: hundreds run, a thousand wait, over an executor that computes nothing.
// The plain loop reads a number per block of each running request and each waiting one's tokens once.
#include <benchmark/benchmark.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "engine/engine.h"
#include "engine/testing/no_executor.h"
#include "exec/device_memory.h"

namespace cachalot::engine {
namespace {

constexpr uint32_t kVocabulary = NoExecutor::kVocabulary, kRunning = 256, kWaiting = 1000, kPrompt = 512,
                   kSlots = 80000;

enum class Traffic { kUnique, kSharedPrefix, kFiveTenants };

// 256 sequences run, 1,000 requests wait; whenever one ends, another begins and another comes.
class Load {
 public:
  Load(const std::string& admission, Traffic traffic, uint32_t output)
      : traffic_(traffic), output_(output), memory_(Memory()) {
    EngineOptions options{.max_queue = 10 * kWaiting,
                          .max_sequences = kRunning,
                          .step_rows = 4096,
                          .prefill_chunk = 4096,
                          .admission = admission};
    if (traffic == Traffic::kFiveTenants) options.tenants.resize(5);
    engine_ = std::make_unique<Engine>(options, executor_, *memory_, sampler_);
    for (uint32_t i = 0; i < kRunning + kWaiting; ++i) Arrive();
    while (Step() < kRunning) {
    }
  }

  // Sequences that run after it.
  uint32_t Step() {
    const StepOutput out = engine_->Step(std::move(input_));
    input_ = {};
    for (size_t i = 0; i < out.finishes.size(); ++i) Arrive();
    waiting_ = out.stats.waiting_requests;
    return out.stats.running_sequences;
  }
  uint32_t waiting() const { return waiting_; }

 private:
  std::unique_ptr<exec::DeviceMemory> Memory() {
    return exec::MakeCpuMemory(executor_.layout().slot_bytes, kSlots).value();
  }

  void Arrive() {
    GenerateRequest& request = input_.arrivals.emplace_back();
    request.id = RequestId(++arrived_);
    SplitMix64 random(arrived_);
    for (uint32_t i = 0; i < kPrompt; ++i) {
      const bool shared = traffic_ != Traffic::kUnique && i < kPrompt / 2;
      request.prompt.push_back(shared ? i % kVocabulary : static_cast<TokenId>(random.Below(kVocabulary)));
    }
    request.max_tokens = output_ + static_cast<uint32_t>(arrived_ % 97);
    request.sampling.temperature = 0;
    if (traffic_ == Traffic::kFiveTenants) request.tenant = TenantId(arrived_ % 5);
  }

  const Traffic traffic_;
  const uint32_t output_;
  NoExecutor executor_;
  exec::Sampler sampler_ = exec::FakeSampler();
  std::unique_ptr<exec::DeviceMemory> memory_;
  std::unique_ptr<Engine> engine_;
  StepInput input_;
  uint64_t arrived_ = 0;
  uint32_t waiting_ = 0;
};

void SchedulingStep(benchmark::State& state, const std::string& admission, Traffic traffic, uint32_t output) {
  Load load(admission, traffic, output);
  for (auto _ : state) benchmark::DoNotOptimize(load.Step());
  CACHALOT_CHECK(load.waiting() >= kWaiting - kRunning);
}
BENCHMARK_CAPTURE(SchedulingStep, unique, "guaranteed", Traffic::kUnique, 256u)->Iterations(2000);
BENCHMARK_CAPTURE(SchedulingStep, shared, "guaranteed", Traffic::kSharedPrefix, 256u)->Iterations(2000);
BENCHMARK_CAPTURE(SchedulingStep, tenants, "guaranteed", Traffic::kFiveTenants, 256u)->Iterations(2000);
BENCHMARK_CAPTURE(SchedulingStep, expected, "expected", Traffic::kSharedPrefix, 256u)->Iterations(2000);

// One pass over what the step is about: a page table's worth of integers per running sequence, a prompt per waiting
// one.
void PlainLoop(benchmark::State& state) {
  std::vector<std::vector<uint32_t>> running(kRunning, std::vector<uint32_t>(kPrompt / 16)),
      waiting(kWaiting, std::vector<uint32_t>(kPrompt));
  for (auto _ : state) {
    uint64_t sum = 0;
    for (const auto& each : running) sum = std::accumulate(each.begin(), each.end(), sum);
    for (const auto& each : waiting) sum = std::accumulate(each.begin(), each.end(), sum);
    benchmark::DoNotOptimize(sum);
  }
}
BENCHMARK(PlainLoop);

}  // namespace
}  // namespace cachalot::engine
