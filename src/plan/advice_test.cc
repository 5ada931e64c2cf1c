#include "plan/advice.h"

#include <functional>

#include <fmt/format.h>
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

const Lever* LeverIn(const std::vector<Lever>& levers, std::string_view begin) {
  const auto found = std::ranges::find_if(levers, [&](const Lever& lever) { return lever.name.starts_with(begin); });
  return found == levers.end() ? nullptr : &*found;
}

TEST(Levers, TiersThatAreThereAreTriedAtTwiceTheirSizeWhileThereIsMoreToKeep) {
  Present present = SmallPresent();
  present.traffic.distinct_tokens = 1'000'000;
  present.setting.host_slots = 4000;
  present.setting.disk_slots = 20'000;
  std::vector<Lever> levers = LeversOf(present);
  const Lever *host = LeverIn(levers, "twice the host memory"), *disk = LeverIn(levers, "twice the disk");
  ASSERT_TRUE(host != nullptr && disk != nullptr);
  EXPECT_EQ(host->setting.host_slots, 8000u);
  EXPECT_EQ(host->setting.disk_slots, 20'000u);
  EXPECT_EQ(host->flags, fmt::format("--host-memory {}MiB", 8000 * present.setting.slot_bytes >> 20));
  EXPECT_EQ(disk->setting.disk_slots, 40'000u);
  EXPECT_EQ(LeverIn(levers, "host memory"), nullptr);

  present.traffic.distinct_tokens = 10'000;
  levers = LeversOf(present);
  EXPECT_EQ(LeverIn(levers, "twice the host memory"), nullptr);
  EXPECT_EQ(LeverIn(levers, "twice the disk"), nullptr);
}

// Each as the issue names it, changing what its name says.
TEST(Levers, ThereIsOneOfEachFamily) {
  Present present = SmallPresent();
  present.traffic.reorder = true;
  present.traffic.asked_most = 4000;
  const Setting& now = present.setting;
  const std::vector<Lever> levers = LeversOf(present);
  const auto changes = [&](std::string_view begin, const std::function<bool(const Setting&)>& as_expected) {
    const Lever* lever = LeverIn(levers, begin);
    ASSERT_NE(lever, nullptr) << begin;
    EXPECT_TRUE(as_expected(lever->setting)) << begin;
  };
  changes("prompt order", [&](const Setting& s) { return s.reordered; });
  changes("eviction by lru", [&](const Setting& s) { return s.eviction == "lru"; });
  changes("KV as int8", [&](const Setting& s) { return s.slots > now.slots * 1.8 && s.slots < now.slots * 1.9; });
  changes("KV as int4", [&](const Setting& s) { return s.slots > now.slots * 3.5 && s.slots < now.slots * 3.6; });
  changes("host memory for KV", [&](const Setting& s) { return s.host_slots > 0; });
  changes("disk for KV", [&](const Setting& s) { return s.disk_slots > 0; });
  changes("expected admission", [&](const Setting& s) { return s.admission == "expected"; });
  changes("context of at most 1,000 tokens", [&](const Setting& s) { return s.context_tokens == 1000; });
  changes("answers of at most 100 tokens", [&](const Setting& s) { return s.output_limit == 100; });
  changes("requests that ask for at most 200 tokens", [&](const Setting& s) { return s.output_limit == 200; });
  changes("128 sequences at once", [&](const Setting& s) { return s.max_sequences == 128; });
  changes("weights as q4_k", [&](const Setting& s) { return s.reading[0] < now.reading[0] / 2; });
  changes("2 devices share", [&](const Setting& s) { return s.slots > 2 * now.slots; });
  changes("token eviction", [&](const Setting& s) { return s.slots == 2 * now.slots && !s.prefix_cache; });
  changes("a model with grouped queries", [&](const Setting& s) { return s.slots == 2 * now.slots; });
  changes("twice the KV memory", [&](const Setting& s) { return s.slots == 2 * now.slots; });
  present.setting.prefix_cache = false;
  EXPECT_NE(LeverIn(LeversOf(present), "prefix caching"), nullptr);
  present.setting.admission = "expected";
  EXPECT_NE(LeverIn(LeversOf(present), "0 % of the pool left free"), nullptr);
}

// Also for a model that has a KV head for eight query heads already.
TEST(Levers, OtherArchitecturesKeepLess) {
  Present present = SmallPresent();
  present.request.model = KnownModel("llama-3.1-70b");
  present.request.machine.shards.tensor = 8;
  present.setting = *SettingOf(present.request, 0);
  const Setting& now = present.setting;
  const std::vector<Lever> levers = LeversOf(present);
  EXPECT_EQ(LeverIn(levers, "a model with grouped queries"), nullptr);
  const Lever* latent = LeverIn(levers, "a model with latent attention");
  ASSERT_NE(latent, nullptr);
  EXPECT_EQ(latent->setting.slots, static_cast<uint64_t>(static_cast<double>(now.slots) / (576.0 / 2048)));
  const Lever* sliding = LeverIn(levers, "a model with sliding windows");
  ASSERT_NE(sliding, nullptr);
  const Setting& s = sliding->setting;
  EXPECT_EQ(std::ranges::count(s.kv.layers, 1024u, &LayerKvShape::window), 67);  // of 80
  EXPECT_DOUBLE_EQ(s.reading[2] + s.reading[3], now.reading[2]);
  EXPECT_NEAR(s.reading[2] / now.reading[2], 13.0 / 80, 1e-12);
  EXPECT_LE(s.slots * s.slot_bytes, now.slots * now.slot_bytes);
  EXPECT_GT((s.slots + 1) * s.slot_bytes, now.slots * now.slot_bytes);
  // What has windows, or a latent, already is offered neither.
  present.request.model = KnownModel("gemma-3-27b");
  present.request.machine.shards.tensor = 1;
  present.setting = *SettingOf(present.request, 0);
  EXPECT_EQ(LeverIn(LeversOf(present), "a model with sliding windows"), nullptr);
}

// What has half the bytes a token is twice as often in each tier, whose bytes stay; so do a window's layers.
TEST(Levers, TiersHoldAsManyBytesOfWhatIsSmaller) {
  const auto bytes_of = [](const Setting& s, uint64_t slots) {
    return static_cast<double>(slots * PlanKvLayout(s.kv, s.context_tokens).value().slot_bytes);
  };
  for (const char* model : {"llama-3.1-8b", "gemma-3-27b"}) {
    Present present = SmallPresent();
    present.request.model = KnownModel(model);
    present.request.kv.block_tokens = 32;
    present.setting = *SettingOf(present.request, 0);
    Setting& now = present.setting;
    now.host_slots = 40'000;
    now.disk_slots = 500'000;
    const std::vector<Lever> levers = LeversOf(present);
    int seen = 0;
    for (const char* name : {"KV as int8", "KV as int4", "smaller blocks", "a model with grouped queries",
                             "a model with sliding windows", "a model with latent attention"}) {
      const Lever* lever = LeverIn(levers, name);
      if (lever == nullptr) continue;
      ++seen;
      const Setting& s = lever->setting;
      SCOPED_TRACE(std::string(model) + ", " + name);
      EXPECT_GT(s.slots, now.slots);
      EXPECT_EQ(now.slot_bytes, PlanKvLayout(now.kv, now.context_tokens).value().slot_bytes);
      EXPECT_NEAR(bytes_of(s, s.slots) / bytes_of(now, now.slots), 1, 0.001);
      EXPECT_NEAR(bytes_of(s, s.host_slots) / bytes_of(now, now.host_slots), 1, 0.001);
      EXPECT_NEAR(bytes_of(s, s.disk_slots) / bytes_of(now, now.disk_slots), 1, 0.001);
      EXPECT_EQ(s.slot_bytes, PlanKvLayout(s.kv, s.context_tokens).value().slot_bytes);
    }
    EXPECT_EQ(seen, std::string(model) == "llama-3.1-8b" ? 6 : 5);
  }
}

TEST(Credits, ArePagingAndPrefixCachingAgainstGoingWithout) {
  Present present = SmallPresent();
  present.setting.slots = 5 * 8192 / 16;  // five whole contexts
  const std::vector<Lever> credits = CreditsOf(present);
  ASSERT_EQ(credits.size(), 2u);
  EXPECT_EQ(credits[0].name, "paging");
  EXPECT_EQ(credits[0].setting.max_sequences, 5u);
  EXPECT_EQ(credits[0].note, "against room for the whole context of 8,192 tokens for each: 5 at once");
  EXPECT_EQ(credits[1].name, "prefix caching");
  EXPECT_FALSE(credits[1].setting.prefix_cache);

  const Simulate simulate = [&](std::span<const Setting> settings) -> Result<std::vector<Outcome>> {
    std::vector<Outcome> outcomes;
    for (const Setting& s : settings)
      outcomes.push_back(Served(100, s.max_sequences == 5 ? 6 : s.prefix_cache ? 2 : 3));
    return outcomes;
  };
  const Result<Diagnosis> diagnosis = Diagnose(present, simulate);
  ASSERT_TRUE(diagnosis.ok());
  EXPECT_DOUBLE_EQ(diagnosis->credits[0].gain, 3);
  EXPECT_DOUBLE_EQ(diagnosis->credits[1].gain, 1.5);
  const Report report = BuildAdviceReport({.source = "test", .profile = {}}, present, *diagnosis);
  EXPECT_NE(std::ranges::find(report.tables, "in_use", &Table::key), report.tables.end());
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

TEST(Levers, TokenEvictionSharesNoPrefixes) {
  Present present = SmallPresent();
  present.setting.host_slots = present.setting.disk_slots = 5000;
  const std::vector<Lever> levers = LeversOf(present);
  const auto eviction = std::ranges::find(levers, "token eviction", &Lever::name);
  ASSERT_NE(eviction, levers.end());
  EXPECT_FALSE(eviction->setting.prefix_cache);
  EXPECT_EQ(eviction->setting.host_slots + eviction->setting.disk_slots, 0u);
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

TEST(Setting, TiersAreAsFastAsTheyWereMeasured) {
  PlanRequest request = SmallPresent().request;
  EXPECT_EQ(SettingOf(request, 1 << 30)->disk_read, Setting{}.disk_read);
  EXPECT_EQ(DiskRateText(request.machine, *SettingOf(request, 1 << 30)), "a disk that reads 3 GB/s (assumed)");
  request.machine.measured = StepCurve{0.01, 1e-5, 0, 0, 0};
  EXPECT_FALSE(SettingOf(request, 1 << 30)->host_link.has_value());
  request.machine.tiers[TierIndex(TierId::kHost)][0] = TierRate{1e-5, 9e9};
  request.machine.tiers[TierIndex(TierId::kDisk)] = {TierRate{2e-3, 3e8}, TierRate{4e-3, 1e8}};
  const Setting measured = *SettingOf(request, 1 << 30);
  EXPECT_EQ(measured.host_link, (TierRate{1e-5, 9e9}));
  EXPECT_EQ(measured.disk_read, (TierRate{2e-3, 3e8}));
  EXPECT_EQ(measured.disk_write, (TierRate{4e-3, 1e8}));
  const std::vector<Lever> levers =
      LeversOf({.setting = measured, .request = request, .kv_bytes = 1 << 30, .traffic = {}});
  const auto disk = std::ranges::find(levers, "disk for KV", &Lever::name);
  ASSERT_NE(disk, levers.end());
  EXPECT_EQ(disk->note, "a disk that reads 0.3 GB/s (measured)");
}

TEST(Report, OfATraceWithSkippedLinesSaysSoBesideItsTitle) {
  const Result<Diagnosis> all = DiagnoseServed([](const Setting&) { return Served(100, 1); });
  const Report report =
      BuildAdviceReport({.source = "t: azure", .skipped = "1 bad line skipped", .profile = {}}, SmallPresent(), *all);
  EXPECT_EQ(report.tables[0].title, "Traffic of t: azure, all at once");
  EXPECT_NE(std::ranges::find(report.tables[0].notes, "1 bad line skipped"), report.tables[0].notes.end());
}

TEST(Setting, NoPoolIsLargerThanWhatTheDeviceHasLeft) {
  const PlanRequest request = SmallPresent().request;
  EXPECT_TRUE(SettingOf(request, uint64_t{50} << 30).ok());
  EXPECT_NE(SettingOf(request, uint64_t{79} << 30).status().message().find("a KV pool of 79 GiB"), std::string::npos);
}

}  // namespace
}  // namespace cachalot::plan
