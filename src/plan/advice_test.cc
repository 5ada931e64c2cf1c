#include "plan/advice.h"

#include <functional>

#include <gtest/gtest.h>

#include "plan/advice_report.h"
#include "plan/testing/shapes.h"

namespace cachalot::plan {
namespace {

Present SmallPresent() {
  Present present;
  present.request.model = KnownModel("llama-3.1-8b");
  present.request.machine.device = *FindDevice("h100");
  present.request.weight_format = PublishedFormat(present.request.model);
  present.request.kv.format = *FindKvFormat("f16");
  present.request.kv.reference_tokens = present.request.context_tokens = 8192;
  present.setting = *SettingOf(present.request, 0);
  present.traffic = {.context_p99 = 1000, .context_most = 2000, .output_p90 = 100, .output_most = 200};
  return present;
}

Outcome Served(uint64_t served, double e2e) {
  Outcome outcome;
  outcome.requests = 100;
  outcome.served = outcome.within_target = served;
  outcome.e2e_mean_seconds = e2e;
  return outcome;
}

TEST(Gain, IsMoreRequestsServedOrElseTheTimeOfEach) {
  EXPECT_DOUBLE_EQ(GainOf(Served(100, 4), Served(100, 2)), 2);
  EXPECT_DOUBLE_EQ(GainOf(Served(50, 4), Served(100, 8)), 2);  // more are served, though each takes longer
  EXPECT_LT(GainOf(Served(100, 4), Served(90, 1)), 1);         // quicker for those who are not refused
  EXPECT_DOUBLE_EQ(GainOf(Served(0, 0), Served(0, 0)), 1);
}

// A simulation in which only what `better` says is better than the present.
Diagnosis DiagnoseWith(const std::function<double(const Setting&)>& e2e) {
  const Simulate simulate = [&](std::span<const Setting> settings) -> Result<std::vector<Outcome>> {
    std::vector<Outcome> outcomes;
    for (const Setting& setting : settings) outcomes.push_back(Served(100, setting.alone ? 0.1 : e2e(setting)));
    return outcomes;
  };
  return *Diagnose(SmallPresent(), simulate);
}

TEST(Diagnose, AmongLargeGainsTheOneThatRisksLeastComesFirst) {
  const Diagnosis diagnosis = DiagnoseWith([](const Setting& s) {
    if (s.eviction == "lru") return 4.0;     // 2.5 times as good, a flag
    if (s.output_limit > 0) return 1.0;      // ten times, but answers are cut
    if (s.max_sequences == 128) return 8.0;  // 1.25 times, a flag
    return 10.0;
  });
  ASSERT_EQ(diagnosis.advice.size(), 3u);
  EXPECT_EQ(diagnosis.advice[0].lever.flags, "--eviction lru");
  EXPECT_EQ(diagnosis.advice[1].lever.flags, "--default-max-tokens 100");
  EXPECT_EQ(diagnosis.advice[2].lever.flags, "--max-sequences 128");
  EXPECT_TRUE(diagnosis.waits);
  EXPECT_EQ(diagnosis.binds, std::nullopt);  // no constraint that was taken away made a difference
}

TEST(Diagnose, CapacityIsNamedWhereNothingMoreParticularIsAsGood) {
  const uint64_t slots = SmallPresent().setting.slots;
  const auto both = [&](const Setting& s) { return s.slots > 2 * slots || s.host_slots > slots ? 1.0 : 10.0; };
  EXPECT_EQ(DiagnoseWith(both).binds, Constraint::kRecomputation);
  const auto room = [&](const Setting& s) { return s.slots > 2 * slots ? 1.0 : 10.0; };
  EXPECT_EQ(DiagnoseWith(room).binds, Constraint::kCapacity);
}

TEST(Diagnose, NothingBindsWhereRequestsDoNotWait) {
  const Diagnosis diagnosis = DiagnoseWith([](const Setting& s) { return s.reading[0] < 0.004 ? 0.05 : 0.1; });
  EXPECT_FALSE(diagnosis.waits);
  EXPECT_EQ(diagnosis.binds, std::nullopt);
}

TEST(Levers, EachChangesTheSettingAndSaysWhatItTakes) {
  const Present present = SmallPresent();
  const std::vector<Lever> levers = LeversOf(present);
  EXPECT_GT(levers.size(), 15u);
  for (const Lever& lever : levers) {
    const Setting& s = lever.setting;
    const Setting& now = present.setting;
    const bool same = s.slots == now.slots && s.curve == now.curve && s.reading == now.reading &&
                      s.max_sequences == now.max_sequences && s.step_rows == now.step_rows &&
                      s.prefill_chunk == now.prefill_chunk && s.prefix_cache == now.prefix_cache &&
                      s.thrash_control == now.thrash_control && s.eviction == now.eviction &&
                      s.admission == now.admission && s.admission_reserve == now.admission_reserve &&
                      s.context_tokens == now.context_tokens && s.output_limit == now.output_limit &&
                      s.host_slots == now.host_slots && s.disk_slots == now.disk_slots && s.reordered == now.reordered;
    EXPECT_FALSE(same) << lever.name;
    EXPECT_FALSE(lever.flags.empty() && lever.note.empty()) << lever.name;
  }
}

TEST(Levers, WhatIsLeftFreeIsTriedWhereNothingIsGuaranteed) {
  const auto reserves = [](const Present& present) {
    std::vector<std::string> flags;
    for (const Lever& lever : LeversOf(present)) {
      if (lever.flags.starts_with("--admission-reserve")) flags.push_back(lever.flags);
    }
    return flags;
  };
  Present present = SmallPresent();
  EXPECT_TRUE(reserves(present).empty());
  present.setting.admission = "optimistic";
  EXPECT_EQ(reserves(present), (std::vector<std::string>{"--admission-reserve 0", "--admission-reserve 0.1"}));
}

TEST(Setting, TheMachineReadsItsWeightsInEachStep) {
  const Setting setting = SmallPresent().setting;
  // 8.03e9 weights less the embedding's 0.53e9, two bytes each, at 80 % of 3.35 TB/s.
  EXPECT_NEAR(setting.reading[0], 7.5e9 * 2 / (0.8 * 3.35e12), 1e-4);
  // 131,072 bytes of KV per position.
  EXPECT_NEAR(setting.reading[2], 131'072 / (0.8 * 3.35e12), 1e-10);
  EXPECT_EQ(setting.reading[3], 0);
}

TEST(Levels, AreWeightedByTime) {
  // One for ten seconds, of which two for one second.
  const LevelSpread spread = SpreadOf({{0, 10, 1}, {3, 4, 1}});
  EXPECT_DOUBLE_EQ(spread.mean, 1.1);
  EXPECT_EQ(spread.p50, 1u);
  EXPECT_EQ(spread.p90, 1u);
  EXPECT_EQ(spread.p99, 2u);
  EXPECT_EQ(spread.peak, 2u);
  EXPECT_EQ(SpreadOf({}).peak, 0u);
  // A pause counts as none.
  EXPECT_EQ(SpreadOf({{0, 1, 5}, {9, 10, 5}}).p50, 0u);
}

// In which so many requests are served as `served` says.
Result<Diagnosis> DiagnoseServed(const std::function<Outcome(const Setting&)>& served) {
  const Simulate simulate = [&](std::span<const Setting> settings) -> Result<std::vector<Outcome>> {
    std::vector<Outcome> outcomes;
    for (const Setting& setting : settings) outcomes.push_back(served(setting));
    return outcomes;
  };
  return Diagnose(SmallPresent(), simulate);
}

TEST(Diagnose, SaysWhyWhereNothingIsServed) {
  const Result<Diagnosis> none = DiagnoseServed([](const Setting&) {
    Outcome outcome = Served(0, 0);
    outcome.first_refusal = "the queue is full";
    return outcome;
  });
  EXPECT_EQ(none.status().message(),
            "none of 100 requests is served as it is, so there is nothing to compare with: the queue is full");
}

TEST(Diagnose, WhatServesMoreComesBeforeWhatIsQuicker) {
  const uint64_t slots = SmallPresent().setting.slots;
  const Result<Diagnosis> half = DiagnoseServed([&](const Setting& s) {
    if (s.slots == 2 * slots) return Served(100, 10);  // memory serves all
    if (s.slots > 2 * slots) return Served(100, 9);
    if (s.eviction == "lru") return Served(80, 1);   // a flag some more
    if (s.reading[0] < 0.004) return Served(30, 1);  // faster memory makes them ten times as quick
    return Served(30, 10);
  });
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(half->advice.front().lever.name, "twice the KV memory");
  EXPECT_EQ(half->binds, Constraint::kCapacity);
}

TEST(Report, BeginsWithHowManyAreRefused) {
  const Result<Diagnosis> half = DiagnoseServed([](const Setting&) {
    Outcome outcome = Served(50, 1);
    outcome.first_refusal = "it is too long";
    return outcome;
  });
  const Report report = BuildAdviceReport({.source = "test", .profile = {}}, SmallPresent(), *half);
  EXPECT_EQ(report.answers[0], "50 of 100 requests are refused, the first because: it is too long.");
}

TEST(Setting, NoPoolIsLargerThanWhatTheDeviceHasLeft) {
  const PlanRequest request = SmallPresent().request;
  EXPECT_TRUE(SettingOf(request, uint64_t{50} << 30).ok());
  EXPECT_NE(SettingOf(request, uint64_t{79} << 30).status().message().find("a KV pool of 79 GiB"), std::string::npos);
}

}  // namespace
}  // namespace cachalot::plan
