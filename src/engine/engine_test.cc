#include "engine/engine.h"

#include <algorithm>
#include <map>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "exec/device_memory.h"
#include "exec/sampler.h"
#include "exec/testing/fake_executor.h"
#include "kv/kv_snapshot.h"

namespace cachalot::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

enum class Device { kCpu, kSimLink };

// An engine over the fake model, and what its clients were told.
class Rig {
 public:
  explicit Rig(EngineOptions options = {}, exec::FakeOptions model = {}, uint32_t slots = 256,
               Device device = Device::kCpu) {
    const uint64_t slot_bytes = exec::FakeExecutor::LayoutFor(model).slot_bytes;
    auto memory = device == Device::kCpu
                      ? exec::MakeCpuMemory(slot_bytes, slots)
                      : exec::MakeSimLinkMemory(slot_bytes, slots, {.bytes_per_second = 1e6}, clock_);
    memory_ = std::move(memory).value();
    executor_ = std::make_unique<exec::FakeExecutor>(model, *memory_);
    engine_ = std::make_unique<Engine>(options, *executor_, *memory_, sampler_);
  }

  StepOutput Step(StepInput input = {}) {
    input.now = clock_.Now();
    StepOutput out = engine_->Step(std::move(input));
    for (const TokenEvent& e : out.tokens) outputs[{e.id, e.choice}].push_back(e.token.token);
    for (const FinishEvent& e : out.finishes) {
      EXPECT_FALSE(finishes.contains({e.id, e.choice})) << "two endings of one choice";
      finishes.emplace(std::pair(e.id, e.choice), e);
    }
    const std::vector<std::string> problems = kv::Violations(engine_->Snapshot());
    EXPECT_TRUE(problems.empty()) << problems.front();
    EXPECT_TRUE(executor_->violations().empty()) << executor_->violations().front();
    return out;
  }
  StepOutput Arrive(GenerateRequest request) {
    StepInput input;
    input.arrivals.push_back(std::move(request));
    return Step(std::move(input));
  }
  StepOutput Cancel(RequestId id) {
    StepInput input;
    input.cancels.push_back(id);
    return Step(std::move(input));
  }
  void RunToEnd() {
    while (!engine_->idle()) Step();
  }

  Engine& engine() { return *engine_; }
  exec::FakeExecutor& executor() { return *executor_; }

  std::map<std::pair<RequestId, uint32_t>, std::vector<TokenId>> outputs;
  std::map<std::pair<RequestId, uint32_t>, FinishEvent> finishes;

 private:
  ManualClock clock_;
  std::unique_ptr<exec::DeviceMemory> memory_;
  std::unique_ptr<exec::FakeExecutor> executor_;
  exec::Sampler sampler_ = exec::FakeSampler();
  std::unique_ptr<Engine> engine_;
};

GenerateRequest Request(uint64_t id, std::vector<TokenId> prompt, uint32_t max_tokens) {
  GenerateRequest request;
  request.id = RequestId(id);
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  return request;
}

std::vector<TokenId> Tokens(uint32_t count, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& t : tokens) t = static_cast<TokenId>(random.Below(1000));
  return tokens;
}

// What the request's choice must answer: one token after the other, alone, straight from the model.
std::vector<TokenId> Expected(const exec::FakeExecutor& model, const GenerateRequest& request, uint32_t choice) {
  exec::Sampler sampler = exec::FakeSampler();
  std::vector<TokenId> all = request.prompt, output;
  while (output.size() < request.max_tokens) {
    const std::vector<float> logits = model.ExpectedLogits(all);
    output.push_back(sampler.Sample(request.sampling, {logits, request.prompt, output, choice, all.size()}).token);
    all.push_back(output.back());
    if (std::ranges::binary_search(request.end_tokens, output.back())) break;
  }
  return output;
}

TEST(Engine, AnswersWithTheModelsTokensAndEndsAtTheLimit) {
  Rig rig;
  const GenerateRequest request = Request(1, Tokens(40, 1), 25);
  rig.Arrive(request);
  rig.RunToEnd();
  EXPECT_EQ((rig.outputs[{RequestId(1), 0}]), Expected(rig.executor(), request, 0));
  const FinishEvent& end = rig.finishes.at({RequestId(1), 0});
  EXPECT_EQ(end.reason, FinishReason::kLength);
  EXPECT_EQ(end.prompt_tokens, 40u);
  EXPECT_EQ(end.output_tokens, 25u);
  EXPECT_EQ(rig.Step().stats.free_slots, 256u);
}

TEST(Engine, AnEndTokenEndsAChoiceAndIsItsLastToken) {
  Rig rig;
  GenerateRequest request = Request(1, Tokens(10, 2), 50);
  const std::vector<TokenId> all = Expected(rig.executor(), request, 0);
  request.end_tokens = {all[7]};
  const auto first = std::ranges::find(all, all[7]) - all.begin();
  rig.Arrive(request);
  rig.RunToEnd();
  EXPECT_EQ((rig.outputs[{RequestId(1), 0}]), std::vector<TokenId>(all.begin(), all.begin() + first + 1));
  EXPECT_EQ(rig.finishes.at({RequestId(1), 0}).reason, FinishReason::kStop);
}

TEST(Engine, AStopConditionEndsItsOwnChoiceOnly) {
  struct AfterThree : StopCondition {
    explicit AfterThree(bool on) : armed(on) {}
    bool Push(TokenId) override { return armed && ++seen == 3; }
    bool armed;
    int seen = 0;
  };
  Rig rig;
  GenerateRequest request = Request(1, Tokens(10, 3), 9);
  request.n = 2;
  auto made = std::make_shared<int>(0);
  request.stop = [made] { return std::make_unique<AfterThree>((*made)++ == 0); };
  rig.Arrive(request);
  rig.RunToEnd();
  EXPECT_EQ((rig.outputs[{RequestId(1), 0}].size()), 3u);
  EXPECT_EQ((rig.outputs[{RequestId(1), 1}].size()), 9u);
  EXPECT_EQ(rig.finishes.at({RequestId(1), 0}).reason, FinishReason::kStop);
  EXPECT_EQ(rig.finishes.at({RequestId(1), 1}).reason, FinishReason::kLength);
}

TEST(Engine, ScoresAPromptWithoutGenerating) {
  Rig rig({.prefill_chunk = 7}, {.limits = {.rows = 64, .logit_rows = 5}});
  GenerateRequest request = Request(1, Tokens(23, 4), 0);
  request.prompt_logprobs = 2;
  StepOutput out = rig.Arrive(request);
  std::vector<SampledToken> scored;
  for (;; out = rig.Step()) {
    for (const PromptEvent& event : out.prompts) {
      EXPECT_EQ(event.first, scored.size() + 1);
      scored.insert(scored.end(), event.tokens.begin(), event.tokens.end());
    }
    if (rig.engine().idle()) break;
  }
  exec::Sampler sampler = exec::FakeSampler();
  ASSERT_EQ(scored.size(), 22u);
  for (size_t i = 0; i < scored.size(); ++i) {
    const std::vector<float> logits = rig.executor().ExpectedLogits(std::span(request.prompt).first(i + 1));
    EXPECT_EQ(scored[i], sampler.Score(logits, request.prompt[i + 1], 2)) << i;
  }
  EXPECT_TRUE(rig.outputs.empty());
  EXPECT_EQ(rig.finishes.size(), 1u);
}

TEST(Engine, RefusesWhatCanNeverRunWithNumbers) {
  Rig rig({.max_sequences = 4}, {.context_tokens = 300}, 10);
  const auto reason_of = [&](GenerateRequest request) {
    const StepOutput out = rig.Arrive(std::move(request));
    EXPECT_EQ(out.rejections.size(), 1u);
    return out.rejections.empty() ? Rejection{} : out.rejections.front();
  };
  Rejection r = reason_of(Request(1, Tokens(200, 1), 101));
  EXPECT_EQ(r.reason, RejectReason::kContextLength);
  EXPECT_EQ(r.needed, 301u);
  EXPECT_EQ(r.available, 300u);
  r = reason_of(Request(2, Tokens(150, 1), 11));
  EXPECT_EQ(r.reason, RejectReason::kTooLarge);
  EXPECT_EQ(r.needed, 11u);
  EXPECT_EQ(r.available, 10u);
  EXPECT_EQ(reason_of(Request(3, {}, 5)).reason, RejectReason::kInvalid);
  r = reason_of(Request(4, {1, 2, 1000}, 5));
  EXPECT_EQ(r.reason, RejectReason::kInvalid);
  EXPECT_THAT(r.message, HasSubstr("prompt token 2 is 1000"));
  GenerateRequest many = Request(5, {1}, 5);
  many.n = 5;
  EXPECT_THAT(reason_of(many).message, HasSubstr("at most 4 sequences"));
  GenerateRequest hot = Request(6, {1}, 5);
  hot.sampling.temperature = -1;
  EXPECT_THAT(reason_of(hot).message, HasSubstr("temperature"));
  rig.engine().Drain();
  EXPECT_EQ(reason_of(Request(7, {1}, 5)).reason, RejectReason::kShuttingDown);
}

TEST(Engine, WhatExactlyFitsThePoolRunsAndOneTokenMoreIsRefused) {
  Rig rig({}, {}, 10);
  EXPECT_TRUE(rig.Arrive(Request(1, Tokens(100, 1), 60)).rejections.empty());
  rig.RunToEnd();
  EXPECT_EQ((rig.outputs[{RequestId(1), 0}].size()), 60u);
  EXPECT_EQ(rig.Arrive(Request(2, Tokens(100, 1), 61)).rejections.size(), 1u);
}

TEST(Engine, AFullQueueRefusesTheNextAndThePoolIsFilledFirst) {
  Rig rig({.max_queue = 2, .max_sequences = 3});
  StepInput input;
  for (uint64_t id = 1; id <= 6; ++id) input.arrivals.push_back(Request(id, Tokens(5, id), 4));
  const StepOutput out = rig.Step(std::move(input));
  ASSERT_EQ(out.rejections.size(), 1u);
  EXPECT_EQ(out.rejections.front().id, RequestId(6));
  EXPECT_EQ(out.rejections.front().reason, RejectReason::kQueueFull);
  EXPECT_EQ(out.stats.running_sequences, 3u);
  rig.RunToEnd();
  EXPECT_EQ(rig.finishes.size(), 5u);
}

TEST(Engine, RequestsThatDoNotFitTogetherWaitAndAllFinish) {
  Rig rig({}, {}, 10);
  StepInput input;
  for (uint64_t id = 1; id <= 4; ++id) input.arrivals.push_back(Request(id, Tokens(100, id), 30));
  rig.Step(std::move(input));
  rig.RunToEnd();
  for (uint64_t id = 1; id <= 4; ++id) {
    EXPECT_EQ((rig.outputs[{RequestId(id), 0}]), Expected(rig.executor(), Request(id, Tokens(100, id), 30), 0));
  }
}

TEST(Engine, ACancelFreesTheBlocksInItsOwnStep) {
  Rig rig;
  GenerateRequest request = Request(1, Tokens(100, 1), 30);
  request.n = 3;
  rig.Arrive(request);
  rig.Step();
  const StepOutput out = rig.Cancel(RequestId(1));
  EXPECT_EQ(out.stats.free_slots, 256u);
  EXPECT_EQ(out.stats.promised_slots, 0u);
  EXPECT_EQ(rig.finishes.size(), 3u);
  EXPECT_TRUE(rig.engine().idle());
}

TEST(Engine, ACancelFindsARequestThatWaitsOrArrivesInTheSameStep) {
  Rig rig({.max_sequences = 1});
  rig.Arrive(Request(1, Tokens(10, 1), 30));
  rig.Arrive(Request(2, Tokens(10, 2), 30));
  rig.Cancel(RequestId(2));
  EXPECT_EQ(rig.finishes.at({RequestId(2), 0}).reason, FinishReason::kCancelled);
  StepInput input;
  input.arrivals.push_back(Request(3, Tokens(10, 3), 30));
  input.cancels.push_back(RequestId(3));
  rig.Step(std::move(input));
  EXPECT_EQ(rig.finishes.at({RequestId(3), 0}).reason, FinishReason::kCancelled);
  rig.RunToEnd();
  EXPECT_EQ((rig.outputs[{RequestId(1), 0}].size()), 30u);
}

TEST(Engine, AFailedStepEndsItsRequestsAndLeavesTheRestAlone) {
  Rig rig({.max_sequences = 1});
  rig.Arrive(Request(1, Tokens(10, 1), 30));
  const GenerateRequest second = Request(2, Tokens(10, 2), 30);
  rig.Arrive(second);
  rig.executor().FailRun(1, Internal("device lost"));
  rig.Step();
  const FinishEvent& end = rig.finishes.at({RequestId(1), 0});
  EXPECT_EQ(end.reason, FinishReason::kError);
  EXPECT_EQ(end.error.message(), "device lost");
  rig.RunToEnd();
  EXPECT_EQ((rig.outputs[{RequestId(2), 0}]), Expected(rig.executor(), second, 0));
  EXPECT_EQ(rig.Step().stats.free_slots, 256u);
}

// Random arrivals, forks, samplings, cancels and failed runs: whoever finishes got exactly the model's tokens.
class EngineSoak : public testing::TestWithParam<std::tuple<Device, int>> {};

TEST_P(EngineSoak, EveryAnswerIsThatOfTheRequestAlone) {
  const auto [device, seed] = GetParam();
  SplitMix64 random(static_cast<uint64_t>(seed));
  const auto below = [&](uint64_t n) { return static_cast<uint32_t>(random.Below(n)); };
  exec::FakeOptions model;
  model.windows = seed % 2 == 0 ? std::vector<uint32_t>{0} : std::vector<uint32_t>{0, 24, 24, 40};
  model.limits = {.rows = 40, .logit_rows = 12};
  Rig rig({.max_queue = 50, .max_sequences = 10, .step_rows = 40, .prefill_chunk = 1 + below(40)}, model, 120, device);

  std::map<RequestId, GenerateRequest> requests;
  std::vector<RequestId> cancelled;
  for (int step = 0; step < 1500; ++step) {
    StepInput input;
    while (below(3) == 0) {
      GenerateRequest request = Request(requests.size() + 1, Tokens(1 + below(120), random()), below(40));
      request.n = 1 + below(3);
      request.sampling.temperature = below(2) == 0 ? 0.0f : 1.0f;
      request.sampling.seed = random();
      if (below(4) == 0) request.prompt_logprobs = 1;
      if (below(2) == 0) request.end_tokens = {below(1000)};
      requests.emplace(request.id, request);
      input.arrivals.push_back(std::move(request));
    }
    if (!requests.empty() && below(6) == 0) {
      cancelled.push_back(RequestId(1 + below(requests.size())));
      input.cancels.push_back(cancelled.back());
    }
    if (below(100) == 0) rig.executor().FailRun(1, Internal("injected"));
    for (const Rejection& r : rig.Step(std::move(input)).rejections) requests.erase(r.id);
  }
  rig.RunToEnd();
  EXPECT_EQ(rig.Step().stats.free_slots, 120u);

  uint32_t compared = 0;
  for (const auto& [id, request] : requests) {
    for (uint32_t c = 0; c < request.n; ++c) {
      ASSERT_TRUE(rig.finishes.contains({id, c}));
      const std::vector<TokenId> expected = Expected(rig.executor(), request, c);
      std::vector<TokenId> got = rig.outputs[{id, c}];
      const FinishReason reason = rig.finishes.at({id, c}).reason;
      if (reason == FinishReason::kStop || reason == FinishReason::kLength) {
        EXPECT_EQ(got, expected) << id.value << "." << c;
        ++compared;
      } else {
        ASSERT_LE(got.size(), expected.size());
        EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.begin())) << id.value << "." << c;
      }
    }
  }
  EXPECT_GT(compared, 100u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, EngineSoak,
                         testing::Combine(testing::Values(Device::kCpu, Device::kSimLink), testing::Range(0, 4)));

TEST(Engine, EqualInputsGiveEqualOutputs) {
  const auto run = [](std::vector<TokenEvent>* events) {
    Rig rig({.max_sequences = 5}, {}, 60);
    StepInput input;
    for (uint64_t id = 1; id <= 12; ++id) {
      input.arrivals.push_back(Request(id, Tokens(20, id), 10));
      input.arrivals.back().sampling.temperature = 1;
    }
    for (StepOutput out = rig.Step(std::move(input));; out = rig.Step()) {
      events->insert(events->end(), out.tokens.begin(), out.tokens.end());
      if (rig.engine().idle()) break;
    }
  };
  std::vector<TokenEvent> first, second;
  run(&first);
  run(&second);
  ASSERT_EQ(first.size(), 120u);
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].id, second[i].id);
    EXPECT_EQ(first[i].token, second[i].token);
  }
}

}  // namespace
}  // namespace cachalot::engine
