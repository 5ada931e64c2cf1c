#include "engine/engine_loop.h"

#include <chrono>
#include <future>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "exec/device_memory.h"
#include "exec/sampler.h"
#include "exec/testing/fake_executor.h"

namespace cachalot::engine {
namespace {

class LoopTest : public testing::Test {
 protected:
  LoopTest() : memory_(std::move(exec::MakeCpuMemory(exec::FakeExecutor::LayoutFor({}).slot_bytes, 64)).value()) {}

  static GenerateRequest Request(uint64_t id, uint32_t max_tokens) {
    GenerateRequest request;
    request.id = RequestId(id);
    request.prompt = {1, 2, 3};
    request.max_tokens = max_tokens;
    return request;
  }

  SteadyClock clock_;
  std::unique_ptr<exec::DeviceMemory> memory_;
  exec::FakeExecutor executor_{{}, *memory_};
  exec::Sampler sampler_ = exec::FakeSampler();
  Engine engine_{{}, executor_, *memory_, sampler_};
};

TEST_F(LoopTest, DeliversEveryTokenAndTheEnd) {
  std::promise<uint32_t> finished;
  uint32_t tokens = 0;
  EngineLoop loop(engine_, clock_, [&](StepOutput out) {
    tokens += static_cast<uint32_t>(out.tokens.size());
    if (!out.finishes.empty()) finished.set_value(tokens);
  });
  loop.Submit(Request(1, 17));
  EXPECT_EQ(finished.get_future().get(), 17u);
}

TEST_F(LoopTest, ACancelFromAnotherThreadEndsTheRequest) {
  std::promise<FinishReason> finished;
  std::promise<void> begun;
  bool first = true;
  EngineLoop loop(engine_, clock_, [&](StepOutput out) {
    if (!out.tokens.empty() && std::exchange(first, false)) begun.set_value();
    if (!out.finishes.empty()) finished.set_value(out.finishes.front().reason);
  });
  loop.Submit(Request(1, 900));
  begun.get_future().get();
  loop.Cancel(RequestId(1));
  const FinishReason reason = finished.get_future().get();
  EXPECT_TRUE(reason == FinishReason::kCancelled || reason == FinishReason::kLength);
}

TEST_F(LoopTest, DrainFinishesWhatRunsAndRefusesWhatComes) {
  std::promise<void> finished, refused;
  EngineLoop loop(engine_, clock_, [&](StepOutput out) {
    for (const Rejection& r : out.rejections) {
      EXPECT_EQ(r.reason, RejectReason::kShuttingDown);
      refused.set_value();
    }
    for (const FinishEvent& f : out.finishes) {
      EXPECT_EQ(f.reason, FinishReason::kLength);
      finished.set_value();
    }
  });
  loop.Submit(Request(1, 50));
  loop.Drain();
  loop.Submit(Request(2, 50));
  finished.get_future().get();
  refused.get_future().get();
}

TEST_F(LoopTest, AQuestionIsAnsweredWhileNothingRuns) {
  std::promise<Answer> answered;
  EngineLoop loop(engine_, clock_, [&](StepOutput out) {
    for (const Answer& answer : out.answers) answered.set_value(answer);
  });
  loop.Ask({InquiryId(3), InquiryKind::kOverview, {}});
  EXPECT_EQ(answered.get_future().get().id, InquiryId(3));
}

TEST_F(LoopTest, EveryStepIsToldWithItsDuration) {
  std::promise<uint64_t> finished;
  uint64_t told = 0;
  EngineLoop loop(engine_, clock_, [&](StepOutput out) {
    EXPECT_GT(out.duration.count(), 0);
    ++told;
    EXPECT_EQ(out.stats.steps, told);
    if (!out.finishes.empty()) finished.set_value(told);
  });
  GenerateRequest request = Request(1, 3);
  request.prompt.assign(700, 5);  // two steps, the first of which says nothing
  loop.Submit(std::move(request));
  EXPECT_EQ(finished.get_future().get(), 4u);
}

// Forks copy the block that they share and write.
TEST_F(LoopTest, WhatAStepWaitsForCopiesIsToldApart) {
  const exec::LinkSpec slow{.latency = std::chrono::milliseconds(20)};
  const auto memory = exec::MakeSimLinkMemory(memory_->slot_bytes(), 64, slow, clock_).value();
  exec::FakeExecutor executor({}, *memory);
  Engine engine({}, executor, *memory, sampler_);
  std::promise<void> finished;
  TimeTotals time;
  EngineLoop loop(engine, clock_, [&, left = 2](StepOutput out) mutable {
    time = out.stats.time;
    left -= static_cast<int>(out.finishes.size());
    if (!out.finishes.empty() && left == 0) finished.set_value();
  });
  GenerateRequest request = Request(1, 20);
  request.n = 2;
  loop.Submit(std::move(request));
  finished.get_future().get();
  loop.Stop();
  EXPECT_GE(time.transfers, slow.latency);
  EXPECT_GE(engine.stalled(), slow.latency);
}

TEST_F(LoopTest, NothingIsDeliveredAfterStop) {
  std::atomic<bool> stopped{false};
  std::atomic<uint32_t> late{0};
  EngineLoop loop(engine_, clock_, [&](StepOutput) { late += stopped ? 1 : 0; });
  for (uint64_t id = 1; id <= 20; ++id) loop.Submit(Request(id, 500));
  loop.Stop();
  stopped = true;
  EXPECT_EQ(late, 0u);
}

}  // namespace
}  // namespace cachalot::engine
