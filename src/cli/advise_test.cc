// Traffic of which it is known what holds it back, simulated with the server's engine.
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/advise_run.h"
#include "plan/advice_report.h"
#include "plan/models.h"
#include "plan/testing/shapes.h"
#include "sim/profile.h"
#include "sim/reorder.h"
#include "sim/testing/made_trace.h"

namespace cachalot::cli {
namespace {

using plan::Constraint;
using sim::testing::Ask;
using sim::testing::MadeTrace;
using sim::testing::TextOf;
using ::testing::HasSubstr;

struct Machine {
  uint64_t slots = 100'000;
  StepCurve curve{};
  uint32_t block_tokens = 16;
};

plan::Present PresentOn(const Machine& machine) {
  plan::Present present;
  present.request.model = plan::KnownModel("llama-3.1-8b");
  present.request.machine.measured = machine.curve;
  present.request.weight_format = plan::PublishedFormat(present.request.model);
  present.request.kv.format = *plan::FindKvFormat("f16");
  present.request.kv.block_tokens = machine.block_tokens;
  present.request.kv.reference_tokens = present.request.context_tokens = 32'768;
  const plan::KvSizes sizes = *plan::SizeKv(present.request.model, present.request.kv);
  present.kv_bytes = machine.slots * sizes.slot_bytes;
  present.setting = *plan::SettingOf(present.request, present.kv_bytes);
  return present;
}

struct Advised {
  sim::TrafficProfile profile;
  plan::Diagnosis diagnosis;
  plan::Report report;
};

Advised Advise(const sim::Trace& trace, plan::Present present) {
  Advised advised;
  const sim::Overlap overlap = sim::FindOverlap(trace);
  advised.profile = sim::ProfileTraffic(trace, overlap);
  present.traffic.reorder = advised.profile.edited_tokens + advised.profile.moved_tokens > 0;
  present.traffic.distinct_tokens = advised.profile.prompt_tokens;
  present.traffic.output_p90 = advised.profile.output.p90;
  present.traffic.output_most = advised.profile.output.most;
  present.traffic.asked_most = advised.profile.asked_most;
  const AdviseRun run(trace, sim::Reordered(trace, overlap), {});
  Result<plan::Diagnosis> diagnosis = plan::Diagnose(present, std::ref(run));
  EXPECT_TRUE(diagnosis.ok()) << diagnosis.status().message();
  if (!diagnosis.ok()) return advised;
  advised.diagnosis = std::move(diagnosis).value();
  advised.report = plan::BuildAdviceReport({.source = "test", .profile = advised.profile}, present, advised.diagnosis);
  return advised;
}

const plan::Probe& ProbeOf(const Advised& advised, Constraint constraint) {
  return *std::ranges::find(advised.diagnosis.probes, constraint, &plan::Probe::constraint);
}

sim::Trace NewTexts(uint64_t requests, uint64_t prompt, uint64_t output, double seconds_apart) {
  MadeTrace made(seconds_apart);
  for (uint64_t i = 0; i < requests; ++i) made.Add(Ask{.prompt = {TextOf(100 + i, 0, prompt)}, .output = output});
  return std::move(made).Take();
}

TEST(Advise, ComputeBindsWhereMemoryIdlesAndRequestsWait) {
  // Each takes a second to compute and comes after half of one.
  const Advised advised = Advise(NewTexts(60, 2000, 4, 0.5), PresentOn({.curve = {1e-4, 5e-4, 0, 0, 0}}));
  EXPECT_EQ(advised.diagnosis.binds, Constraint::kCompute);
  EXPECT_LT(ProbeOf(advised, Constraint::kCapacity).gain, plan::kLeastGain);
  EXPECT_THAT(advised.report.answers[0], HasSubstr("more KV does nothing"));
  for (const plan::Advice& advice : advised.diagnosis.advice) EXPECT_NE(advice.lever.name, "twice the KV memory");
}

TEST(Advise, CapacityBindsWhereThePoolHoldsTooFewAtOnce) {
  // Four seconds each, two a second, and room for two.
  const Advised advised =
      Advise(NewTexts(60, 1000, 200, 0.5), PresentOn({.slots = 160, .curve = {0.02, 1e-7, 0, 0, 0}}));
  EXPECT_EQ(advised.diagnosis.binds, Constraint::kCapacity);
  ASSERT_FALSE(advised.diagnosis.advice.empty());
  const bool more = std::ranges::any_of(advised.diagnosis.advice,
                                        [](const plan::Advice& a) { return a.lever.name == "twice the KV memory"; });
  EXPECT_TRUE(more);
  EXPECT_GT(advised.diagnosis.present.pressure, 0.5);
}

// The server's own record: it says that clients allow a hundred times what their answers have.
TEST(Advise, PromisesBindWhereRequestsAskForMoreThanTheyGetAndAFlagComesFirst) {
  sim::Trace trace = NewTexts(120, 200, 40, 0.1);
  for (sim::TraceRequest& request : trace.requests) request.asked_tokens = 4000;
  const Advised advised = Advise(trace, PresentOn({.slots = 1024, .curve = {0.02, 1e-5, 1e-9, 0, 2e-5}}));
  EXPECT_EQ(advised.diagnosis.binds, Constraint::kFragmentation);
  ASSERT_FALSE(advised.diagnosis.advice.empty());
  const plan::Advice& first = advised.diagnosis.advice.front();
  EXPECT_EQ(first.lever.flags, "--admission expected");
  EXPECT_GT(first.gain, 2);
  const std::string& capacity = *std::ranges::find_if(
      advised.report.answers, [](const std::string& answer) { return answer.starts_with("Capacity: "); });
  EXPECT_THAT(capacity, HasSubstr("guaranteed admission sets aside for what they ask for"));
  EXPECT_THAT(capacity, HasSubstr("what they hold fits, what they are promised does not"));
  const plan::Advice* less = nullptr;
  for (const plan::Advice& advice : advised.diagnosis.advice) {
    if (advice.lever.name == "requests that ask for at most 40 tokens") less = &advice;
  }
  ASSERT_NE(less, nullptr);
  EXPECT_EQ(less->after.served, 120u);
  EXPECT_GT(less->gain, 2);
}

TEST(Advise, RecomputationBindsWhereThePoolRunsThemButDoesNotKeepThem) {
  MadeTrace made(0.3);
  for (uint64_t turn = 0; turn < 15; ++turn) {
    for (uint64_t talk = 0; talk < 8; ++talk) {
      made.Add(Ask{.prompt = {TextOf(10 + talk, 0, 2000 + 50 * turn)}, .output = 4});
    }
  }
  const Advised advised = Advise(std::move(made).Take(), PresentOn({.slots = 600, .curve = {1e-3, 2e-4, 0, 0, 0}}));
  EXPECT_EQ(advised.diagnosis.binds, Constraint::kRecomputation);
  EXPECT_GT(advised.diagnosis.present.recomputed, 0.2);
}

TEST(Advise, BandwidthBindsWhereEachStepReadsTheWeightsForFew) {
  // A step reads 2.5 GB at 240 GB/s: a second for 100 tokens, of eight at a time; sixteen come in a second.
  plan::Present present;
  present.request = plan::RequestFor(plan::KnownModel("llama-3.2-1b"), "l4", 8192);
  present.setting = *plan::SettingOf(present.request, 0);
  present.setting.max_sequences = 8;
  const Advised advised = Advise(NewTexts(80, 50, 100, 1.0 / 16), present);
  EXPECT_EQ(advised.diagnosis.binds, Constraint::kBandwidth);
  EXPECT_GT(ProbeOf(advised, Constraint::kBandwidth).gain, 1.5);
  EXPECT_LT(ProbeOf(advised, Constraint::kCompute).gain, 1.1);
  EXPECT_THAT(advised.report.answers[0], HasSubstr("Bandwidth binds first"));
  EXPECT_THAT(advised.report.answers[0], HasSubstr("Bandwidth-bound: more KV does nothing"));
  const bool lighter = std::ranges::any_of(advised.diagnosis.advice,
                                           [](const plan::Advice& a) { return a.lever.name == "weights as q4_k"; });
  EXPECT_TRUE(lighter);
}

TEST(Advise, FragmentationBindsWhereBlocksAreLargeAndRequestsShort) {
  const Advised advised =
      Advise(NewTexts(200, 20, 40, 0.1), PresentOn({.slots = 8, .curve = {0.05, 1e-7, 0, 0, 0}, .block_tokens = 256}));
  EXPECT_EQ(advised.diagnosis.binds, Constraint::kFragmentation);
  ASSERT_FALSE(advised.diagnosis.advice.empty());
  EXPECT_EQ(advised.diagnosis.advice[0].lever.flags, "--block-tokens 16");
}

TEST(Advise, NothingHelpsWhereRequestsDoNotWait) {
  const Advised advised = Advise(NewTexts(30, 500, 20, 100), PresentOn({.curve = {0.01, 1e-4, 0, 0, 0}}));
  EXPECT_EQ(advised.diagnosis.binds, std::nullopt);
  EXPECT_TRUE(advised.diagnosis.advice.empty()) << advised.diagnosis.advice[0].lever.name;
  EXPECT_THAT(advised.report.answers[0], HasSubstr("Nothing binds"));
  EXPECT_THAT(advised.report.answers[1], HasSubstr("No change helps"));
}

TEST(Advise, AStampInTheSystemPromptIsFoundAndMovingItHelpsMost) {
  MadeTrace made(0.4);
  for (uint64_t i = 0; i < 80; ++i) {
    made.Add(Ask{.prompt = {TextOf(1, 0, 37), TextOf(1000 + i, 0, 6), TextOf(1, 37, 1500), TextOf(5000 + i, 0, 50)},
                 .output = 4});
  }
  const Advised advised = Advise(std::move(made).Take(), PresentOn({.curve = {1e-3, 5e-4, 0, 0, 0}}));
  EXPECT_EQ(advised.diagnosis.binds, Constraint::kCompute);
  EXPECT_EQ(advised.profile.divergences.front().position, 37u);
  ASSERT_FALSE(advised.diagnosis.advice.empty());
  const plan::Advice& first = advised.diagnosis.advice.front();
  EXPECT_EQ(first.lever.name, "prompt order");
  EXPECT_GT(first.gain, 2);
  EXPECT_LT(advised.diagnosis.present.hit_rate, 0.05);
  EXPECT_GT(first.after.hit_rate, 0.9);
}

TEST(Advise, OutcomesDoNotDependOnTheNumberOfThreads) {
  const sim::Trace trace = NewTexts(20, 300, 20, 0.2);
  const plan::Present present = PresentOn({.slots = 60, .curve = {0.01, 1e-4, 0, 0, 0}});
  const std::vector<plan::Setting> settings(4, present.setting);
  const auto one = *AdviseRun(trace, {}, {.threads = 1})(settings);
  const auto four = *AdviseRun(trace, {}, {.threads = 4})(settings);
  for (size_t i = 0; i < settings.size(); ++i) {
    EXPECT_EQ(one[i].e2e_mean_seconds, four[i].e2e_mean_seconds);
    EXPECT_EQ(one[0].e2e_mean_seconds, one[i].e2e_mean_seconds);
  }
}

TEST(Advise, EachRequestAloneIsMeasuredWhileItIsServed) {
  const sim::Trace trace = NewTexts(150, 100, 10, 0.1);  // so many that they cannot be as far apart as they like
  plan::Setting alone = PresentOn({.curve = {0.1, 0, 0, 0, 0}}).setting;
  alone.alone = true;
  const auto outcomes = AdviseRun(trace, {}, {})(std::vector{alone});
  ASSERT_TRUE(outcomes.ok()) << outcomes.status().message();
  EXPECT_NEAR((*outcomes)[0].tokens_per_second, 10, 0.1);  // ten steps of a tenth of a second
  EXPECT_NEAR((*outcomes)[0].busy, 1, 1e-3);
}

TEST(Advise, WhoIsRefusedIsSaidFirst) {
  sim::Trace trace = NewTexts(10, 100, 10, 1);
  trace.requests[3] = NewTexts(1, 40'000, 10, 1).requests[0];
  const Advised advised = Advise(trace, PresentOn({.curve = {0.01, 0, 0, 0, 0}}));
  EXPECT_THAT(advised.report.answers[0], HasSubstr("1 of 10 requests are refused, the first because: "));
  EXPECT_THAT(advised.report.answers[0], HasSubstr("40010"));
  EXPECT_THAT(advised.report.answers[1], HasSubstr("Nothing binds"));  // the others do not wait
}

}  // namespace
}  // namespace cachalot::cli
