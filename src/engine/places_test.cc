#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/random.h"
#include "engine/engine.h"
#include "exec/device_memory.h"
#include "exec/sim/sim_executor.h"

namespace cachalot::engine {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

// Eight conversations that send the same 300 tokens again as soon as they are answered, in a pool that holds three.
class Crowd {
 public:
  explicit Crowd(bool control)
      : memory_(std::move(exec::MakeCpuMemory(exec::SimExecutor::LayoutFor(Model()).slot_bytes, kSlots)).value()),
        executor_(Model(), clock_),
        engine_(Options(control), executor_, *memory_, sampler_) {
    for (uint64_t id = 1; id <= kConversations; ++id) idle_.insert(RequestId(id));
  }

  void RunUntil(Nanos end) {
    while (clock_.Now() < end) Step();
  }
  const EngineStats& Step() {
    StepInput input{.now = clock_.Now()};
    for (const RequestId id : std::exchange(idle_, {})) input.arrivals.push_back(Turn(id));
    return Run(std::move(input));
  }
  // Requests of another tenant, which come at once and do not return.
  void Flood(uint32_t requests) {
    StepInput input{.now = clock_.Now()};
    for (uint64_t id = 1000; id < 1000 + requests; ++id) {
      input.arrivals.push_back(Turn(RequestId(id)));
      input.arrivals.back().tenant = TenantId(1);
    }
    Run(std::move(input));
  }
  const EngineStats& CancelThoseAnsweredSince(Nanos moment) {
    StepInput input{.now = clock_.Now()};
    for (const auto& [id, when] : last_answer) {
      if (when > moment) input.cancels.push_back(id);
    }
    return Run(std::move(input));
  }

  std::map<RequestId, Nanos> last_answer;
  Nanos longest_wait{0};
  EngineStats stats;

 private:
  static constexpr uint32_t kSlots = 64;
  static constexpr uint64_t kConversations = 8;

  static exec::SimOptions Model() {
    exec::SimOptions model;
    model.curve = {0.05, 0.002, 0, 0, 0};
    return model;
  }
  static EngineOptions Options(bool control) {
    EngineOptions options;
    options.thrash_control = control;
    return options;
  }
  GenerateRequest Turn(RequestId id) {
    GenerateRequest request;
    request.id = id;
    SplitMix64 random(id.value);
    for (int i = 0; i < 300; ++i) request.prompt.push_back(static_cast<TokenId>(random.Below(256)));
    request.max_tokens = 8;
    request.sampling.temperature = 0;
    asked_[id] = clock_.Now();
    return request;
  }
  const EngineStats& Run(StepInput input) {
    const StepOutput out = engine_.Step(std::move(input));
    for (const FinishEvent& end : out.finishes) {
      if (end.reason == FinishReason::kCancelled) continue;
      if (end.id.value <= kConversations) idle_.insert(end.id);
      last_answer[end.id] = clock_.Now();
      longest_wait = std::max(longest_wait, clock_.Now() - asked_.at(end.id));
    }
    stats = out.stats;
    return stats;
  }

  ManualClock clock_;
  std::unique_ptr<exec::DeviceMemory> memory_;
  exec::SimExecutor executor_;
  exec::Sampler sampler_ = exec::SimSampler();
  Engine engine_;
  std::set<RequestId> idle_;
  std::map<RequestId, Nanos> asked_;
};

TEST(Places, ThoseThatFitGoOnAndTheOthersWaitOutside) {
  Crowd off(false), on(true);
  off.RunUntil(minutes(5));
  on.RunUntil(minutes(5));
  EXPECT_GT(off.stats.refault_share, 0.5);
  EXPECT_EQ(off.stats.outside_requests, 0u);
  EXPECT_GT(off.stats.pressure.some.shares[1], 0.99);
  EXPECT_LT(on.stats.refault_share, 0.05);
  EXPECT_GT(on.stats.taken_slots_limit, 0u);
  EXPECT_GE(on.stats.outside_requests, 4u);
  EXPECT_GT(on.stats.requests_finished, 3 * off.stats.requests_finished / 2);
  EXPECT_GT(on.stats.pressure.some.total, seconds(250));
}

TEST(Places, ChangeHandsInTimeThoughConversationsNeverEnd) {
  Crowd crowd(true);
  crowd.RunUntil(minutes(120));
  ASSERT_EQ(crowd.last_answer.size(), 8u);
  for (const auto& [id, when] : crowd.last_answer) EXPECT_GT(when, minutes(75)) << id.value;
  EXPECT_LT(crowd.longest_wait, minutes(5 * 8 + 1));  // as if there were one place
}

TEST(Places, OneIsGivenWhenNothingElseCouldRun) {
  Crowd crowd(true);
  crowd.RunUntil(minutes(3));
  const uint32_t outside = crowd.Step().outside_requests;
  ASSERT_GT(outside, 0u);
  crowd.CancelThoseAnsweredSince(minutes(2));
  EXPECT_EQ(crowd.stats.running_sequences + crowd.stats.waiting_requests, outside);
  EXPECT_GT(crowd.stats.running_sequences, 0u);
}

TEST(Places, WhoQueuedManyBeforeTheLimitCameUpGivesThemBack) {
  Crowd crowd(true);
  crowd.RunUntil(seconds(28));  // it comes up after half a minute
  ASSERT_EQ(crowd.stats.taken_slots_limit, 0u);
  crowd.Flood(60);
  crowd.RunUntil(seconds(40));
  ASSERT_GT(crowd.stats.taken_slots_limit, 0u);
  EXPECT_LE(crowd.stats.taken_slots, crowd.stats.taken_slots_limit + 40);
  EXPECT_GT(crowd.stats.outside_requests, 20u);
}

}  // namespace
}  // namespace cachalot::engine
