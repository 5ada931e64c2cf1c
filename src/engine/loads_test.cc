#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "engine/testing/tiered_rig.h"

namespace cachalot::engine {
namespace {

class Loads : public testing::TestWithParam<TieredCase> {};

// The front computes a block per step while parts of the load arrive late, out of order or not at all.
TEST_P(Loads, WhereverFrontAndLoadMeetTheAnswerIsThatOfTheRequestAlone) {
  std::set<uint32_t> cuts;
  uint64_t failed = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    TieredRig tiered({.engine = {.max_sequences = 4, .step_rows = 16, .prefill_chunk = 16},
                      .model = GetParam().model,
                      .device = GetParam().device,
                      .link = {.bytes_per_second = 1e12, .latency = Nanos(1)},
                      .faults = {.seed = seed,
                                 .bytes_per_second = 1e8 * static_cast<double>(1 + seed % 10),
                                 .fail_share = seed % 3 == 0 ? 0.1 : 0,
                                 .hold_share = 0.2},
                      .curve = StepCurve{8e-5, 1e-6}});
    const GenerateRequest request = Request(1, Tokens(470, seed), 4);
    Ask(tiered, request);
    tiered.Restart();
    cuts.insert(Ask(tiered, request));
    const EngineStats stats = tiered.rig().Step().stats;
    EXPECT_EQ(stats.in_use_slots(), 0u);
    EXPECT_EQ(stats.promised_slots, 0u);
    failed += stats.tiers.failed_loads;
  }
  EXPECT_GT(cuts.size(), 3u);
  EXPECT_GT(failed, 0u);
}

// Of a prompt whose parts are single blocks; from a front that computes all of it to one that computes the first block.
TEST_P(Loads, TheyMeetAtEveryBlock) {
  constexpr uint32_t kBlocks = 12;
  std::set<uint32_t> cuts;
  for (uint64_t seed = 1; seed <= 400 && cuts.size() < kBlocks; ++seed) {
    TieredRig tiered({.engine = {.max_sequences = 4, .step_rows = 16, .prefill_chunk = 16},
                      .model = GetParam().model,
                      .device = GetParam().device,
                      .link = {.bytes_per_second = 1e12, .latency = Nanos(1)},
                      .faults = {.seed = seed},
                      .curve = StepCurve{2e-5, 2e-6}});
    const GenerateRequest request = Request(1, Tokens(kBlocks * 16 + 1, seed), 4);
    Ask(tiered, request);
    tiered.Restart();
    tiered.rig().Arrive(request);
    while (!tiered.rig().engine().idle()) {
      tiered.rig().Advance(Nanos(1500 * (seed % 80)));
      tiered.rig().Step();
    }
    EXPECT_EQ((tiered.rig().outputs[{request.id, 0u}]), Expected(tiered.rig().executor(), request, 0));
    cuts.insert(tiered.rig().finishes.at({request.id, 0u}).cached_tokens / 16);
  }
  std::set<uint32_t> all;
  for (uint32_t cut = 0; cut < kBlocks; ++cut) all.insert(cut);
  EXPECT_EQ(cuts, all);
}

TEST_P(Loads, CopiesMayEndBetweenTwoQuestions) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    TieredRig tiered({.engine = {.max_sequences = 4, .step_rows = 16, .prefill_chunk = 16},
                      .model = GetParam().model,
                      .device = GetParam().device,
                      .link = {.bytes_per_second = 1e12, .latency = Nanos(1)},
                      .faults = {.seed = seed, .bytes_per_second = 1e9},
                      .curve = StepCurve{8e-5, 1e-6}});
    const GenerateRequest request = Request(1, Tokens(470, seed), 4);
    Ask(tiered, request);
    tiered.Restart();
    if (tiered.rig().memory().asynchronous()) tiered.rig().memory().EndLate(0.5, seed);
    EXPECT_GT(Ask(tiered, request), 0u);
    EXPECT_EQ(tiered.rig().Step().stats.in_use_slots(), 0u);
  }
}

TEST_P(Loads, ACancelWhileBothGoOnLeavesNothing) {
  for (int steps = 0; steps < 24; ++steps) {
    TieredRig tiered({.engine = {.max_sequences = 4, .step_rows = 16, .prefill_chunk = 16},
                      .model = GetParam().model,
                      .device = GetParam().device,
                      .curve = StepCurve{8e-5, 1e-6}});
    GenerateRequest request = Request(1, Tokens(400, 1), 4);
    Ask(tiered, request);
    tiered.Restart();
    tiered.rig().Arrive(request);
    for (int i = 0; i < steps; ++i) tiered.rig().Step();
    tiered.rig().Cancel(request.id);
    tiered.rig().WriteAll();
    const EngineStats stats = tiered.rig().Step().stats;
    EXPECT_EQ(stats.in_use_slots(), 0u);
    EXPECT_EQ(stats.promised_slots, 0u);
    request.id = RequestId(2);
    Ask(tiered, request);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Loads,
                         testing::Values(TieredCase{"Full", Device::kCpu, {}},
                                         TieredCase{"Sliding", Device::kCpu, SlidingModel()},
                                         TieredCase{"SlidingOverALink", Device::kSimLink, SlidingModel()}),
                         [](const auto& info) { return info.param.name; });

// Steps take the time that the curve says, and the disk as long as its rate: all in virtual time.
class TimedLoads : public testing::Test {
 protected:
  static constexpr uint32_t kPrompt = 1600;
  static constexpr StepCurve kCurve = {1e-4, 1e-4};

  static TieredRig::Options With(double bytes_per_second, uint64_t disk_bytes = 64 << 20) {
    return {.engine = {.max_sequences = 4, .step_rows = 64, .prefill_chunk = 64},
            .slots = 400,
            .disk_bytes = disk_bytes,
            .faults = {.bytes_per_second = bytes_per_second},
            .reads = 1,
            .curve = kCurve};
  }

  // Seconds to its first token.
  static double Ttft(TieredRig& tiered, const GenerateRequest& request) {
    const Nanos begun = tiered.clock().Now();
    StepInput input;
    input.arrivals.push_back(request);
    for (std::optional<double> ttft;;) {
      const StepOutput out = tiered.rig().Step(std::exchange(input, {}));
      input.last_duration = Nanos(static_cast<int64_t>(out.predicted_seconds * 1e9));
      tiered.rig().Advance(input.last_duration);
      if (!ttft && !out.tokens.empty()) ttft = ToSeconds(tiered.clock().Now() - begun);
      if (tiered.rig().engine().idle()) {
        EXPECT_EQ(tiered.rig().outputs[std::pair(request.id, 0u)], Expected(tiered.rig().executor(), request, 0));
        return *ttft;
      }
      const std::optional<Nanos> due = tiered.rig().engine().next_due();
      if (tiered.rig().engine().awaits_transfers() && due && *due > tiered.clock().Now()) {
        tiered.rig().Advance(*due - tiered.clock().Now());
      }
    }
  }

  // Of one that comes back after a restart, once others have shown how fast the disk is.
  static double ResumeTtft(double bytes_per_second) {
    TieredRig tiered(With(bytes_per_second));
    for (uint64_t i = 1; i <= 4; ++i) {
      Ask(tiered, Request(i, Tokens(kPrompt, i), 2));
      for (; tiered.rig().engine().writes_pending(); tiered.rig().Step()) tiered.rig().Advance(Nanos(100'000'000));
    }
    tiered.Restart();
    double ttft = 0;
    for (uint64_t i = 1; i <= 4; ++i) ttft = Ttft(tiered, Request(10 + i, Tokens(kPrompt, i), 2));
    return ttft;
  }

  static double RecomputeTtft() {
    TieredRig tiered(With(1, 0));
    return Ttft(tiered, Request(1, Tokens(kPrompt, 1), 2));
  }

  static double Bytes() {
    return static_cast<double>(exec::FakeExecutor::LayoutFor({}).slot_bytes) * (kPrompt / 16 - 1);
  }
};

TEST_F(TimedLoads, ASlowDiskCostsLittleMoreThanComputing) {
  const double recompute = RecomputeTtft();
  for (const double slower : {3.0, 10.0, 100.0}) {
    EXPECT_LE(ResumeTtft(Bytes() / recompute / slower), 1.2 * recompute) << slower;
  }
}

// Nobody knows yet how fast it is, so loading is tried.
TEST_F(TimedLoads, ADiskThatHangsCostsLittleMoreThanComputing) {
  const double recompute = RecomputeTtft();
  TieredRig tiered(With(1e9));
  Ask(tiered, Request(1, Tokens(kPrompt, 1), 2));
  tiered.ChangeDisk(1);
  tiered.Restart();
  const double ttft = Ttft(tiered, Request(2, Tokens(kPrompt, 1), 2));
  EXPECT_GT(ttft, recompute) << "it waited for the disk";
  EXPECT_LE(ttft, 1.2 * recompute);
  const EngineStats stats = tiered.rig().Step().stats;
  EXPECT_EQ(stats.in_use_slots(), 0u);
  EXPECT_EQ(stats.promised_slots, 0u);
}

TEST_F(TimedLoads, WhereBothWaysTakeAsLongBothAtOnceTakeTwoThirds) {
  const double recompute = RecomputeTtft();
  EXPECT_LE(ResumeTtft(Bytes() / recompute), 0.65 * recompute);
}

TEST_F(TimedLoads, AFastDiskIsAsFastAsItsRate) {
  const double recompute = RecomputeTtft();
  EXPECT_LE(ResumeTtft(100 * Bytes() / recompute), 0.1 * recompute);
}

}  // namespace
}  // namespace cachalot::engine
