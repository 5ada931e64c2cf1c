// Ten million operations, and neither memory nor work per operation grows.
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <malloc.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/random.h"
#include "base/testing/allocations.h"
#include "engine/engine.h"
#include "engine/testing/no_executor.h"
#include "exec/device_memory.h"

namespace cachalot::engine {
namespace {

constexpr uint64_t kOperations = 10'000'000;
constexpr uint32_t kTenants = 4;

uint64_t ResidentBytes() {
  const std::string text = ReadFile("/proc/self/statm", 4096).value();
  return std::stoull(text.substr(text.find(' '))) * 4096;
}

struct Mark {
  uint64_t operations = 0, heap_bytes = 0, resident_bytes = 0, allocations = 0;
};

// Conversations that come back, prompts that nobody ever saw, cancels, four tenants, and a pool that is always full.
class Service {
 public:
  Service(const std::string& admission, uint32_t slots) : memory_(MakeMemory(slots)) {
    const EngineOptions options{.max_queue = 200,
                                .max_sequences = 64,
                                .step_rows = 2048,
                                .admission = admission,
                                .terms = {.tenant = {.sequences = 30}},
                                .tenants = std::vector<TenantTerms>(kTenants)};
    engine_ = std::make_unique<Engine>(options, executor_, *memory_, sampler_);
  }

  void RunTo(uint64_t operations) {
    while (operations_ < operations) Step();
  }

  Mark Now() {
    malloc_trim(0);
    const struct mallinfo2 heap = mallinfo2();
    return {operations_, heap.uordblks + heap.hblkhd, ResidentBytes(), AllocationsSoFar()};
  }

 private:
  std::unique_ptr<exec::DeviceMemory> MakeMemory(uint32_t slots) {
    return exec::MakeCpuMemory(executor_.layout().slot_bytes, slots).value();
  }

  void Step() {
    StepInput input;
    now_ += Nanos(20'000'000);
    input.now = now_;
    while (waiting_ + input.arrivals.size() < 150) input.arrivals.push_back(Next());
    if (random_.Below(8) == 0) input.cancels.push_back(RequestId(arrived_ - random_.Below(200)));
    const StepOutput out = engine_->Step(std::move(input));
    waiting_ = out.stats.waiting_requests;
    const EngineStats& s = out.stats;
    operations_ = s.steps + s.requests_finished + s.tokens_generated + s.slots_evicted +
                  (s.prompt_tokens_cached + s.prompt_tokens_computed) / 16;
  }

  GenerateRequest Next() {
    GenerateRequest request;
    request.id = RequestId(++arrived_);
    const uint64_t conversation = random_.Below(60);
    SplitMix64 known(conversation), fresh(arrived_);
    const uint64_t shared = 16 * random_.Below(16), more = 1 + random_.Below(100);
    for (uint64_t i = 0; i < shared; ++i) request.prompt.push_back(Token(known));
    for (uint64_t i = 0; i < more; ++i) request.prompt.push_back(Token(fresh));
    request.max_tokens = static_cast<uint32_t>(1 + random_.Below(60));
    request.sampling.temperature = 0;
    request.tenant = TenantId(static_cast<uint32_t>(conversation % kTenants));
    request.scope.salt.low = conversation % kTenants;
    return request;
  }

  static TokenId Token(SplitMix64& random) { return static_cast<TokenId>(random.Below(NoExecutor::kVocabulary)); }

  NoExecutor executor_;
  exec::Sampler sampler_ = exec::FakeSampler();
  std::unique_ptr<exec::DeviceMemory> memory_;
  std::unique_ptr<Engine> engine_;
  SplitMix64 random_{1};
  Nanos now_{0};
  uint64_t arrived_ = 200, waiting_ = 0, operations_ = 0;
};

TEST(Uptime, TenMillionOperationsLeaveNothingBehind) {
#ifdef CACHALOT_CHECKS
  GTEST_SKIP() << "with checks on, every step takes a snapshot";
#endif
  for (const char* admission : {"guaranteed", "expected"}) {
    Service service(admission, std::string_view(admission) == "expected" ? 700 : 3000);
    std::vector<Mark> marks;
    for (uint64_t part = 1; part <= 10; ++part) {
      service.RunTo(part * kOperations / 10);
      marks.push_back(service.Now());
    }
    const auto allocations_each = [&](size_t part) {
      return static_cast<double>(marks[part].allocations - marks[part - 1].allocations) /
             static_cast<double>(marks[part].operations - marks[part - 1].operations);
    };
    for (size_t part = 1; part < marks.size(); ++part) {
      std::printf("%s: %lu operations, heap %lu KiB, resident %lu KiB, %.4f allocations per operation\n", admission,
                  marks[part].operations, marks[part].heap_bytes / 1024, marks[part].resident_bytes / 1024,
                  allocations_each(part));
    }
    // The first half warms it up: its tables are as large as they get.
    EXPECT_LE(marks[9].heap_bytes, marks[4].heap_bytes + (1 << 20));
    EXPECT_LE(marks[9].resident_bytes, marks[4].resident_bytes + (4 << 20));
    EXPECT_LE(allocations_each(9), allocations_each(4) * 1.05);
  }
}

}  // namespace
}  // namespace cachalot::engine
