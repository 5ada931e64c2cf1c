// Counts the heap allocations of this test binary: in steady state a step with its sampling makes none.
#include <gtest/gtest.h>

#include "base/random.h"
#include "base/testing/allocations.h"
#include "base/thread_pool.h"
#include "exec/cpu/cpu_executor.h"
#include "exec/cpu/cpu_model.h"
#include "exec/device_memory.h"
#include "exec/sampler.h"
#include "exec/testing/tiny_model.h"
#include "kernels/kernel_table.h"
#include "model/gguf.h"

namespace cachalot::exec {
namespace {

constexpr uint32_t kSequences = 6;  // of which the last is in its prompt
constexpr uint32_t kBlocks = 40;    // of each, shared ones included
constexpr uint32_t kShared = 20;
constexpr uint32_t kPromptRows = 24;

// A mixed batch over page tables that share their front, sampled in several ways.
class Stepper {
 public:
  explicit Stepper(const CpuModel& model) : pool_(2), sampler_(*kernels::RunnableTables().front()) {
    const auto groups = static_cast<uint32_t>(model.layout().groups.size());
    memory_ = MakeCpuMemory(model.layout().slot_bytes, groups * kSequences * kBlocks).value();
    executor_ = MakeCpuExecutor(model, *memory_, {64, 16}, *kernels::RunnableTables().front(), pool_);
    for (uint32_t s = 0; s < kSequences; ++s) {
      for (uint32_t g = 0; g < groups; ++g) {
        for (uint32_t b = 0; b < kBlocks; ++b) {
          slots_[s].push_back(((b < kShared ? 0 : s) * groups + g) * kBlocks + b);
        }
      }
      for (uint32_t g = 0; g < groups; ++g) pages_[s].push_back({slots_[s].data() + g * kBlocks, kBlocks, 0});
    }
    params_[0].temperature = 0;
    params_[1] = {.temperature = 0.8f, .top_k = 40, .top_p = 0.9};
    params_[2] = {.temperature = 1, .repetition_penalty = 1.1f, .frequency_penalty = 0.1f};
    params_[3] = {.temperature = 1, .min_p = 0.05};
    params_[4] = {.temperature = 1.5f, .logprobs = 0};
  }

  void Step(uint64_t position) {
    SequenceRows rows[kSequences];
    for (uint32_t s = 0; s < kSequences; ++s) {
      const uint32_t count = s + 1 == kSequences ? kPromptRows : 1;
      rows[s] = {std::span(tokens_).first(count), position + s, pages_[s], s + 1 == kSequences ? 0u : 1u};
    }
    const Result<Logits> logits = executor_->Run({rows});
    ASSERT_TRUE(logits.ok());
    for (uint32_t s = 0; s + 1 < kSequences; ++s) {
      tokens_[s] =
          sampler_.Sample(params_[s], {.logits = logits->row(s), .output = tokens_, .position = position}).token;
    }
  }

 private:
  ThreadPool pool_;
  Sampler sampler_;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<Executor> executor_;
  std::vector<uint32_t> slots_[kSequences];
  std::vector<PageTableRef> pages_[kSequences];
  SamplingParams params_[kSequences];
  std::vector<TokenId> tokens_ = std::vector<TokenId>(kPromptRows, 5);
};

TEST(ExecAllocations, AMixedStepAndItsSamplingAllocateNothingOnceASizeWasSeen) {
#ifdef CACHALOT_CHECKS
  GTEST_SKIP() << "sanitizers count their own";
#endif
  for (const char* architecture : {"llama", "gemma3"}) {
    const std::string bytes = MakeTinyModel({.architecture = architecture, .layers = 7, .vocabulary = 3000});
    ThreadPool pool(1);
    const auto file = model::GgufFile::Parse(std::as_bytes(std::span(bytes.data(), bytes.size())), "tiny model");
    ASSERT_TRUE(file.ok());
    const Result<CpuModel> model = CpuModel::Load(*file, {}, pool, nullptr);
    ASSERT_TRUE(model.ok());
    Stepper stepper(*model);
    for (uint64_t position = 520; position < 560; ++position) stepper.Step(position);
    const uint64_t before = AllocationsSoFar();
    for (uint64_t position = 520; position < 600; ++position) stepper.Step(position);
    EXPECT_EQ(AllocationsSoFar(), before) << architecture;
  }
}

}  // namespace
}  // namespace cachalot::exec
