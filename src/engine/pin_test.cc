// Prefixes that clients pin: kept whatever comes, within the budget, and never in anybody's way.
#include <chrono>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "engine/testing/engine_rig.h"

namespace cachalot::engine {
namespace {

using std::chrono::seconds;

GenerateRequest Pinned(uint64_t id, std::vector<TokenId> prompt, Nanos pin, uint32_t max_tokens = 4) {
  GenerateRequest request = Request(id, std::move(prompt), max_tokens);
  request.retention.pin = pin;
  return request;
}

RetentionReport Ask(Rig& rig, GenerateRequest request) {
  const RequestId id = request.id;
  rig.Arrive(std::move(request));
  rig.RunToEnd();
  return rig.finishes.at({id, 0}).retention;
}

class Pins : public testing::TestWithParam<std::vector<uint32_t>> {
 protected:
  exec::FakeOptions Model() const { return {.windows = GetParam()}; }
  uint32_t groups() const { return static_cast<uint32_t>(exec::FakeExecutor::LayoutFor(Model()).groups.size()); }
};

INSTANTIATE_TEST_SUITE_P(Windows, Pins,
                         testing::Values(std::vector<uint32_t>{0}, std::vector<uint32_t>{0, 24, 24},
                                         std::vector<uint32_t>{24, 40}));

TEST_P(Pins, WhatIsPinnedOutlivesAFloodUntilItsTimeIsOver) {
  Rig rig({.pin_budget = 0.3}, Model(), 40 * groups());
  const std::vector<TokenId> prompt = Tokens(64, 1);
  const RetentionReport report = Ask(rig, Pinned(1, prompt, seconds(100)));
  EXPECT_EQ(report.pin, PinOutcome::kWhole);
  EXPECT_EQ(report.pinned_tokens, 64u);
  EXPECT_GT(rig.Step().stats.pinned_slots, 0u);
  for (uint64_t id = 2; id <= 60; ++id) Ask(rig, Request(id, Tokens(200, id), 4));
  Ask(rig, Request(100, prompt, 4));
  EXPECT_EQ(rig.finishes.at({RequestId(100), 0}).cached_tokens, 63u);
  EXPECT_EQ(*rig.engine().next_due() / seconds(1), 100);
  rig.Advance(seconds(101));
  const EngineStats stats = rig.Step().stats;
  EXPECT_EQ(stats.pinned_slots, 0u);
  EXPECT_EQ(stats.in_use_slots(), 0u);
  EXPECT_EQ(stats.promised_slots, 0u);
  for (uint64_t id = 102; id <= 160; ++id) Ask(rig, Request(id, Tokens(200, id), 4));
  Ask(rig, Request(200, prompt, 4));
  EXPECT_LT(rig.finishes.at({RequestId(200), 0}).cached_tokens, 63u);
}

TEST_P(Pins, WithoutABudgetOrACacheTheyAreRefused) {
  Rig none({}, Model());
  EXPECT_EQ(Ask(none, Pinned(1, Tokens(64, 1), seconds(9))).pin, PinOutcome::kRefused);
  EXPECT_EQ(none.Step().stats.pins_refused, 1u);
  Rig off({.prefix_cache = false, .pin_budget = 0.3}, Model());
  const RetentionReport report = Ask(off, Pinned(1, Tokens(64, 1), seconds(9)));
  EXPECT_EQ(report.pin, PinOutcome::kRefused);
  EXPECT_FALSE(report.kept);
}

TEST_P(Pins, ThatDoNotFitAreShortenedThenRefused) {
  Rig rig({.pin_budget = 0.25}, Model(), 80 * groups());  // for 20 blocks of each group
  const RetentionReport first = Ask(rig, Pinned(1, Tokens(900, 1), seconds(9)));
  if (GetParam() == std::vector<uint32_t>{0}) {  // windows bound what is held
    EXPECT_EQ(first.pin, PinOutcome::kShortened);
    EXPECT_GT(first.pinned_tokens, 200u);
    EXPECT_EQ(rig.Step().stats.pins_shortened, 1u);
  }
  EXPECT_LE(rig.Step().stats.pinned_slots, 20 * groups());
  uint64_t id = 2;
  while (Ask(rig, Pinned(id, Tokens(300, id), seconds(9))).pin != PinOutcome::kRefused) ASSERT_LT(++id, 100u);
  EXPECT_LE(rig.Step().stats.pinned_slots, 20 * groups());
}

TEST_P(Pins, OfTheSamePrefixAreOneAndTheLongestHolds) {
  Rig rig({.pin_budget = 0.5}, Model(), 80 * groups());
  const std::vector<TokenId> prompt = Tokens(65, 1);
  EXPECT_EQ(Ask(rig, Pinned(1, prompt, seconds(50))).pin, PinOutcome::kWhole);
  const uint32_t once = rig.Step().stats.pinned_slots;
  for (uint64_t id = 2; id <= 30; ++id) EXPECT_EQ(Ask(rig, Pinned(id, prompt, seconds(20))).pin, PinOutcome::kWhole);
  EXPECT_EQ(rig.Step().stats.pinned_slots, once);
  rig.Advance(seconds(30));
  EXPECT_EQ(rig.Step().stats.pinned_slots, once);
  rig.Advance(seconds(30));
  EXPECT_EQ(rig.Step().stats.pinned_slots, 0u);
}

TEST_P(Pins, ClearEndsThem) {
  Rig rig({.pin_budget = 0.5}, Model(), 80 * groups());
  Ask(rig, Pinned(1, Tokens(65, 1), seconds(50)));
  StepInput clear;
  clear.inquiries.push_back({InquiryId(1), InquiryKind::kClear, {}});
  rig.Step(std::move(clear));
  EXPECT_EQ(rig.Step().stats.free_slots, 80 * groups());
}

TEST_P(Pins, WhateverIsNotRefusedRunsBesideAllThatIsPinned) {
  const uint32_t slots = 40 * groups();
  Rig rig({.pin_budget = 0.25}, Model(), slots);
  for (uint64_t id = 1; id <= 30; ++id) Ask(rig, Pinned(id, Tokens(100, id), seconds(1000)));
  const uint32_t pinned = rig.Step().stats.pinned_slots;
  EXPECT_GT(pinned, slots / 8);
  for (uint32_t tokens = 16;; tokens += 16) {
    const StepOutput out = rig.Arrive(Request(100 + tokens, Tokens(tokens, 100 + tokens), 17));
    rig.RunToEnd();
    if (!out.rejections.empty()) {
      EXPECT_EQ(out.rejections.front().available, slots - slots / 4);
      EXPECT_GT(tokens, 16u * 20u);
      break;
    }
    ASSERT_TRUE(rig.finishes.contains({RequestId(100 + tokens), 0})) << tokens;
    if (tokens == 16 * 200) break;  // windows bound what it holds
  }
  EXPECT_EQ(rig.Step().stats.pinned_slots, pinned);
}

// Pins at random, in a pool that is always full: everybody answers as if alone.
TEST_P(Pins, NeverStandInTheWay) {
  for (const char* admission : {"guaranteed", "expected"}) {
    Rig rig({.max_queue = 1000, .max_sequences = 8, .admission = admission, .pin_budget = 0.4}, Model(), 30 * groups());
    SplitMix64 random(5);
    PromptMaker prompts(3, 120);
    std::vector<GenerateRequest> requests;
    for (int step = 0; step < 600; ++step) {
      StepInput input;
      if (requests.size() < 200 && random.Below(2) == 0) {
        GenerateRequest request = Pinned(requests.size() + 1, prompts.Next(), Nanos(random.Below(300'000)),
                                         static_cast<uint32_t>(1 + random.Below(60)));
        request.n = static_cast<uint32_t>(1 + random.Below(2));
        requests.push_back(request);
        input.arrivals.push_back(std::move(request));
      }
      const StepOutput out = rig.Step(std::move(input));
      ASSERT_TRUE(out.rejections.empty()) << out.rejections.front().message;
      ASSERT_LE(out.stats.pinned_slots, 12 * groups());
    }
    rig.RunToEnd();
    const EngineStats stats = rig.Step().stats;
    EXPECT_EQ(stats.step_failures, 0u);
    EXPECT_GT(stats.pins_whole, 30u);
    EXPECT_GT(stats.pins_refused + stats.pins_shortened, 5u);
    for (const GenerateRequest& request : requests) {
      for (uint32_t c = 0; c < request.n; ++c) {
        ASSERT_EQ((rig.outputs[{request.id, c}]), Expected(rig.executor(), request, c)) << request.id.value;
      }
    }
  }
}

}  // namespace
}  // namespace cachalot::engine
