#include "engine/engine.h"

#include <algorithm>
#include <map>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/engine_rig.h"

namespace cachalot::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// What a pool is sized for (kv::SlotsToPromise) is what the engine asks of it, also where windows peak at another step.
TEST(Engine, APoolOfWhatMustBePromisedIsEnough) {
  const exec::FakeOptions model{.windows = {0, 24, 24, 40}};
  for (const uint32_t prompt : {40u, 200u}) {
    for (const uint32_t n : {1u, 3u}) {
      const kv::KvGeometry geometry = kv::GeometryOf(exec::FakeExecutor::LayoutFor(model), 0);
      const auto slots = static_cast<uint32_t>(kv::SlotsToPromise(geometry, prompt, prompt + 30, n, 512).both());
      GenerateRequest request = Request(1, Tokens(prompt, 1), 30);
      request.n = n;
      Rig enough({}, model, slots);
      enough.Arrive(request);
      enough.RunToEnd();
      EXPECT_EQ(enough.outputs.size(), n);
      Rig less({}, model, slots - 1);
      EXPECT_EQ(less.Arrive(request).rejections.size(), 1u);
    }
  }
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
  EXPECT_EQ(rig.Step().stats.in_use_slots(), 0u);
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
  EXPECT_EQ(out.stats.in_use_slots(), 0u);
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
  EXPECT_EQ(rig.Step().stats.in_use_slots(), 0u);
}

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
