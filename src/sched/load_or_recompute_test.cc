#include "sched/load_or_recompute.h"

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "cost/step_cost.h"
#include "cost/step_work.h"

namespace cachalot::sched {
namespace {

const std::vector<uint32_t> kWindows = {0};
const cost::WorkShape kShape(kWindows);
const cost::StepCost kCost(StepCurve{1e-3, 1e-3, 0, 0, 1e-3});  // a thousand rows a second
constexpr uint64_t kTokenBytes = 1000;

constexpr size_t kRecompute = 0, kLoad = 1, kBoth = 2;

TierSpan Span(TierId tier, uint64_t tokens) {
  return {.tier = tier, .tokens = tokens, .full_bytes = tokens * kTokenBytes};
}

// A prompt of 1,024 tokens and one more, of which the disk has all but the last, at so many of them per second.
ResumeView View(double tokens_per_second) {
  ResumeView view{.prompt_tokens = 1025, .spans = {Span(TierId::kDisk, 1024)}, .step_rows = 64};
  view.links[TierIndex(TierId::kDisk)].rate = {.latency_seconds = 0,
                                               .bytes_per_second = tokens_per_second * kTokenBytes};
  return view;
}

Decision Choose(const ResumeView& view) { return ChooseResume(view, kShape, kCost); }

double RecomputeSeconds(uint64_t rows) {
  return static_cast<double>(rows) * 1e-3 + std::ceil(static_cast<double>(rows) / 64) * 1e-3 + 1e-3;
}

TEST(LoadOrRecompute, WhatNoTierHasIsComputed) {
  ResumeView view = View(1e6);
  view.spans.clear();
  const Decision decision = Choose(view);
  EXPECT_EQ(decision.way, ResumeWay::kRecompute);
  EXPECT_EQ(decision.reason, ResumeReason::kNothingToLoad);
  EXPECT_NEAR(decision.chosen().ttft_seconds, RecomputeSeconds(1025), 1e-9);
  EXPECT_EQ(decision.chosen().computed_tokens, 1025u);
  EXPECT_FALSE(decision.estimates[kLoad] || decision.estimates[kBoth]);
}

TEST(LoadOrRecompute, AFastTierIsLoadedFrom) {
  const Decision decision = Choose(View(1e6));  // in a millisecond; a step takes 65
  EXPECT_EQ(decision.way, ResumeWay::kLoad);
  EXPECT_EQ(decision.reason, ResumeReason::kLeastDelay);
  EXPECT_NEAR(decision.step_seconds, 0.065, 1e-9);
  EXPECT_NEAR(decision.chosen().wait_seconds, 1.024e-3, 1e-9);
  EXPECT_NEAR(decision.chosen().ttft_seconds, 1.024e-3 + RecomputeSeconds(1), 1e-9);
  EXPECT_EQ(decision.chosen().load_bytes, 1024 * kTokenBytes);
  EXPECT_EQ(decision.chosen().computed_tokens, 1u);
}

TEST(LoadOrRecompute, ASlowTierLosesNothingAgainstRecomputing) {
  for (const double rate : {1e-3, 1.0, 10.0}) {
    const Decision decision = Choose(View(rate));
    EXPECT_LE(decision.chosen().ttft_seconds, RecomputeSeconds(1025) + 1e-2);
    EXPECT_GE(decision.chosen().computed_tokens, 1025u - static_cast<uint64_t>(rate * 2) - 16);
    EXPECT_NE(decision.way, ResumeWay::kLoad);
  }
}

TEST(LoadOrRecompute, WhereBothTakeAsLongTheyHalveIt) {
  const Decision decision = Choose(View(1000));
  ASSERT_EQ(decision.way, ResumeWay::kBoth);
  EXPECT_NEAR(static_cast<double>(decision.chosen().meets_at), 512, 16);
  EXPECT_LE(decision.chosen().ttft_seconds, 0.55 * decision.estimates[kRecompute]->ttft_seconds);
  EXPECT_LE(decision.chosen().ttft_seconds, 0.55 * decision.estimates[kLoad]->ttft_seconds);
  EXPECT_EQ(decision.chosen().load_bytes, (1024 - decision.chosen().meets_at) * kTokenBytes);
}

TEST(LoadOrRecompute, LoadingAloneMayNotPayWhereBothAtOnceDo) {
  const Decision decision = Choose(View(900));
  EXPECT_EQ(decision.way, ResumeWay::kBoth);
  EXPECT_FALSE(LoadPays(decision));
  EXPECT_TRUE(LoadPays(Choose(View(1200))));
  EXPECT_TRUE(LoadPays(Choose(View(1e6))));
  EXPECT_FALSE(LoadPays(Choose({.prompt_tokens = 1025})));
}

TEST(LoadOrRecompute, ComputingStartsAtOnceWhenTheLoadTakesLongerThanAStep) {
  ResumeView view = View(1024 / 0.064);  // a step takes 0.065 s
  EXPECT_EQ(Choose(view).way, ResumeWay::kLoad);
  view = View(1024 / 0.066);
  EXPECT_EQ(Choose(view).way, ResumeWay::kBoth);
  view.running = 100;  // even where waiting would be the least for all together
  const Decision crowded = Choose(view);
  EXPECT_EQ(crowded.way, ResumeWay::kBoth);
  EXPECT_EQ(crowded.reason, ResumeReason::kLoadExceedsStep);
  EXPECT_LT(crowded.estimates[kLoad]->cost_seconds, crowded.chosen().cost_seconds);
  view.patience_steps = 2;
  EXPECT_EQ(Choose(view).way, ResumeWay::kLoad);
}

TEST(LoadOrRecompute, WhatTheLinkHasToMoveBeforeCounts) {
  ResumeView view = View(1e6);
  view.links[TierIndex(TierId::kDisk)].queued_bytes = 10'000'000 * kTokenBytes;  // ten seconds
  EXPECT_EQ(Choose(view).way, ResumeWay::kRecompute);
}

TEST(LoadOrRecompute, RowsCountForEachThatTheyDelay) {
  ResumeView view = View(1e6);
  view.running = 10;
  view.running_seconds = 0.01;
  const Decision decision = Choose(view);
  const ResumeEstimate& recompute = *decision.estimates[kRecompute];
  EXPECT_NEAR(recompute.delay_seconds, 1.025 + 1e-3, 1e-9);
  EXPECT_NEAR(recompute.ttft_seconds, RecomputeSeconds(1025) + 17 * 0.01, 1e-9);  // their rows are in each of 17 steps
  EXPECT_NEAR(recompute.cost_seconds, recompute.ttft_seconds + 10 * recompute.delay_seconds, 1e-9);
}

// Recomputing is a little faster than the only tier; but each row delays hundreds.
TEST(LoadOrRecompute, ManyWhoRunMakeLoadingBetter) {
  ResumeView view = View(1000 / 0.06);
  view.prompt_tokens = 64;
  view.spans = {{.tier = TierId::kDisk, .tokens = 48, .full_bytes = 1000 * kTokenBytes}};  // 0.06 s; to compute, 0.049
  view.block_tokens = 48;
  EXPECT_EQ(Choose(view).way, ResumeWay::kRecompute);
  view.running = 300;
  EXPECT_EQ(Choose(view).way, ResumeWay::kLoad);
}

TEST(LoadOrRecompute, AWayThatMissesTheTargetGivesWayToOneThatMeetsIt) {
  ResumeView view = View(1000 / 0.06);
  view.prompt_tokens = 64;
  view.spans = {{.tier = TierId::kDisk, .tokens = 48, .full_bytes = 1000 * kTokenBytes}};
  view.block_tokens = 48;
  view.running = 300;
  ASSERT_EQ(Choose(view).way, ResumeWay::kLoad);
  view.ttft_target_seconds = 0.07;  // loading takes 0.06 + 0.018
  const Decision decision = Choose(view);
  EXPECT_EQ(decision.way, ResumeWay::kRecompute);
  EXPECT_EQ(decision.reason, ResumeReason::kMeetsTarget);
  view.ttft_target_seconds = 1e-6;
  EXPECT_EQ(Choose(view).reason, ResumeReason::kNearestTarget);
  EXPECT_EQ(Choose(view).way, ResumeWay::kRecompute);
  view.ttft_target_seconds = 100;
  EXPECT_EQ(Choose(view).way, ResumeWay::kLoad);
}

TEST(LoadOrRecompute, AFastTierIsLoadedBeforeASlowOneIsMet) {
  ResumeView view = View(1000);
  view.spans.insert(view.spans.begin(), Span(TierId::kHost, 512));
  view.prompt_tokens += 512;
  view.links[TierIndex(TierId::kHost)].rate = {0, 1e7 * kTokenBytes};
  const Decision decision = Choose(view);
  ASSERT_EQ(decision.way, ResumeWay::kBoth);
  EXPECT_EQ(decision.chosen().meets_from, 512u);
  EXPECT_NEAR(static_cast<double>(decision.chosen().meets_at), 512 + 512, 32);
}

TEST(LoadOrRecompute, AHopelessTierIsLeftOut) {
  ResumeView view = View(1e-6);
  view.spans.insert(view.spans.begin(), Span(TierId::kHost, 512));
  view.prompt_tokens += 512;
  view.links[TierIndex(TierId::kHost)].rate = {0, 1e7 * kTokenBytes};
  const Decision decision = Choose(view);
  EXPECT_EQ(decision.way, ResumeWay::kLoad);
  EXPECT_EQ(decision.chosen().end_token, 512u);
  EXPECT_EQ(decision.chosen().computed_tokens, 1025u);
}

TEST(LoadOrRecompute, LoadsEndWhereOneCanGoOn) {
  ResumeView view = View(1e6);
  view.spans = {Span(TierId::kDisk, 256), Span(TierId::kDisk, 256), Span(TierId::kDisk, 512)};
  view.spans[1].resumable = view.spans[2].resumable = false;
  EXPECT_EQ(Choose(view).chosen().end_token, 256u);
  view.spans[2].resumable = true;
  EXPECT_EQ(Choose(view).chosen().end_token, 1024u);
  for (TierSpan& span : view.spans) span.resumable = false;
  EXPECT_EQ(Choose(view).reason, ResumeReason::kNothingToLoad);
}

TEST(LoadOrRecompute, OfSlidingGroupsOnlyTheWindowIsPaidFor) {
  const std::vector<uint32_t> windows = {0, 128};
  ResumeView view = View(1e6);
  view.spans = {Span(TierId::kDisk, 512), Span(TierId::kDisk, 512)};
  view.spans[0].window_bytes = 7'000;
  view.spans[1].window_bytes = 5'000;
  const Decision decision = ChooseResume(view, cost::WorkShape(windows), kCost);
  EXPECT_EQ(decision.way, ResumeWay::kLoad);
  EXPECT_EQ(decision.chosen().load_bytes, 1024 * kTokenBytes + 5'000);
}

TEST(LoadOrRecompute, TheMeetingPointIsTheBestCut) {
  SplitMix64 random(1);
  int compared = 0;
  for (int i = 0; i < 300; ++i) {
    ResumeView view = View(100 + 1e4 * random.Uniform());
    view.hot_tokens = 16 * random.Below(20);
    view.spans = {Span(TierId::kDisk, 16 * (1 + random.Below(60))), Span(TierId::kRemote, 16 * (1 + random.Below(60)))};
    view.prompt_tokens = view.hot_tokens + view.spans[0].tokens + view.spans[1].tokens + 1 + random.Below(100);
    view.links[TierIndex(TierId::kRemote)] = {{0.01 * random.Uniform(), 1e5 + 1e7 * random.Uniform()},
                                              random.Below(100'000)};
    const std::optional<ResumeEstimate> both = Choose(view).estimates[kBoth];
    if (!both || both->meets_from > view.hot_tokens) continue;
    ++compared;
    const uint64_t end = both->end_token;
    double best = 1e30;
    for (uint64_t front = view.hot_tokens; front <= end; front += 16) {
      const auto loaded = [&](size_t s, uint64_t first) {
        const TierSpan& span = view.spans[s];
        const LinkView& link = view.links[TierIndex(span.tier)];
        const uint64_t passed = std::min(front - std::min(front, first), span.tokens);
        const uint64_t bytes = (span.tokens - passed) * kTokenBytes;
        return first >= end || bytes == 0 ? 0 : TransferSeconds(link.rate, bytes, link.queued_bytes);
      };
      const auto rows = static_cast<double>(front - view.hot_tokens);
      const double computed = rows * 1e-3 + std::ceil(rows / 64) * 1e-3;
      best = std::min(
          best, std::max({computed, loaded(0, view.hot_tokens), loaded(1, view.hot_tokens + view.spans[0].tokens)}));
    }
    EXPECT_NEAR(both->ttft_seconds - RecomputeSeconds(view.prompt_tokens - end), best, 1e-4);
  }
  EXPECT_GT(compared, 100);
}

TEST(LoadOrRecompute, MoreThanThePromptChangesNothing) {
  ResumeView view = View(1e6);
  view.prompt_tokens = 1024;  // the last row runs in any case
  const Decision all = Choose(view);
  EXPECT_EQ(all.way, ResumeWay::kLoad);
  EXPECT_EQ(all.chosen().computed_tokens, 1u);
  view.prompt_tokens = 0;
  view.step_rows = view.block_tokens = 0;
  const Decision none = Choose(view);
  EXPECT_TRUE(std::isfinite(none.chosen().ttft_seconds));
}

TEST(LoadOrRecompute, ADecisionIsOneLineAndJsonWithAllItsInputs) {
  ResumeView view = View(1000);
  view.running = 3;
  view.ttft_target_seconds = 2;
  Decision decision = Choose(view);
  const std::string line = DecisionLine(decision);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(line.find("both (load exceeds a step): of 1025 prompt tokens 0 are hot"), 0u) << line;
  EXPECT_NE(line.find("3 running"), std::string::npos) << line;
  nlohmann::json json = nlohmann::json::parse(DecisionAsJson(decision).Dump());
  EXPECT_EQ(json["way"], "both");
  EXPECT_EQ(json["inputs"]["prompt_tokens"], 1025);
  EXPECT_EQ(json["inputs"]["spans"][0]["tier"], "disk");
  EXPECT_EQ(json["inputs"]["links"]["disk"]["bytes_per_second"], 1e6);
  EXPECT_EQ(json["estimates"]["both"]["meets_at"], decision.chosen().meets_at);
  EXPECT_TRUE(json["outcome"].is_null());
  decision.outcome = ResumeOutcome{.ttft_seconds = 0.5, .loaded_tokens = 500, .computed_tokens = 525};
  json = nlohmann::json::parse(DecisionAsJson(decision).Dump());
  EXPECT_EQ(json["outcome"]["loaded_tokens"], 500);
  EXPECT_NE(DecisionLine(decision).find("it took 0.5 s"), std::string::npos);
}

}  // namespace
}  // namespace cachalot::sched
