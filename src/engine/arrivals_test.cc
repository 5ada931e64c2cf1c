// KV that comes from host memory layer after layer, into sequences that run meanwhile.
#include <gtest/gtest.h>

#include "engine/testing/tiered_rig.h"

namespace cachalot::engine {
namespace {

constexpr Nanos kLayer(20'000);    // that each layer of a step takes
constexpr double kRate = 2.5e8;    // bytes/s of the link
constexpr Nanos kLatency(500);     // of each copy
constexpr uint32_t kPrompt = 400;  // tokens
constexpr uint64_t kHost = 1 << 20;

class Arrivals : public testing::TestWithParam<TieredCase> {
 protected:
  static TieredRig::Options With() {
    TieredRig::Options options{.engine = {.max_sequences = 8, .step_rows = 64, .prefill_chunk = 64},
                               .model = GetParam().model,
                               .slots = 400,
                               .device = GetParam().device,
                               .link = {.bytes_per_second = kRate, .latency = kLatency},
                               .disk_bytes = 0,
                               .host_bytes = kHost};
    const size_t layers = options.model.windows.size();
    options.model.layer_time = kLayer;
    options.curve = StepCurve{ToSeconds(kLayer) * static_cast<double>(layers), 1e-5};
    return options;
  }

  static GenerateRequest Of(uint64_t id, const std::string& session, std::vector<TokenId> prompt, uint32_t max_tokens) {
    GenerateRequest request = Request(id, std::move(prompt), max_tokens);
    request.session = SessionName{"", session};
    return request;
  }

  // The KV of these tokens lies in host memory, and nowhere else.
  static void HandDown(TieredRig& tiered, uint64_t id, const std::vector<TokenId>& tokens) {
    Ask(tiered, Of(id, std::to_string(id), tokens, 2));
    Suspend(tiered, id);
    EXPECT_EQ(tiered.rig().Step().stats.idle_slots, 0u);
    EXPECT_GT(tiered.rig().Step().stats.tiers.host_cached_bytes, 0u);
  }

  static void Suspend(TieredRig& tiered, uint64_t id) {
    const SessionCommandId command_id(1 + tiered.rig().session_answers.size());
    SessionCommand command{.id = command_id, .verb = SessionVerb::kSuspend, .name = {"", std::to_string(id)}};
    tiered.rig().Command(command);
    while (!tiered.rig().session_answers.contains(command.id)) tiered.rig().Step();
    while (tiered.rig().Step().stats.tiers.host_moving_bytes > 0) {
    }
  }

  // The next step, once there is something to do.
  static StepOutput Go(TieredRig& tiered, StepInput input = {}) {
    const std::optional<Nanos> due = tiered.rig().engine().next_due();
    if (tiered.rig().engine().awaits_transfers() && due && *due > tiered.clock().Now()) {
      tiered.rig().Advance(*due - tiered.clock().Now());
    }
    return tiered.rig().Step(std::move(input));
  }

  // From its arrival to its first token.
  static Nanos Ttft(TieredRig& tiered, const GenerateRequest& request) {
    const Nanos begun = tiered.clock().Now();
    StepInput input;
    input.arrivals.push_back(request);
    for (std::optional<Nanos> ttft;;) {
      const StepOutput out = Go(tiered, std::exchange(input, {}));
      if (!ttft && !out.tokens.empty()) ttft = tiered.clock().Now() - begun;
      if (!tiered.rig().engine().idle()) continue;
      EXPECT_EQ(tiered.rig().outputs[std::pair(request.id, 0u)], Expected(tiered.rig().executor(), request, 0));
      return *ttft;
    }
  }

  static void ExpectNothingHeld(TieredRig& tiered) {
    EngineStats stats = tiered.rig().Step().stats;
    for (int i = 0; i < 1000 && stats.tiers.host_moving_bytes > 0; ++i) stats = tiered.rig().Step().stats;
    EXPECT_EQ(stats.in_use_slots(), 0u);
    EXPECT_EQ(stats.promised_slots, 0u);
    EXPECT_EQ(stats.tiers.host_moving_bytes, 0u);
    EXPECT_EQ(tiered.host().Violations(), std::vector<std::string>());
  }
};

// A prompt whose KV lies in host memory but for its last block, over a link of such a rate that others have measured.
class Overlap : public Arrivals {
 protected:
  static constexpr Nanos kBetween{1000};  // before each step of the rig
  struct Times {
    Nanos ttft, layer, load, step;  // a layer and all of them over the link, the step that follows
  };

  static Times Resume(double bytes_per_second) {
    TieredRig::Options options = With();
    options.link.bytes_per_second = bytes_per_second;
    TieredRig tiered(options);
    for (uint64_t id = 1; id <= 3; ++id) HandDown(tiered, id, Tokens(kPrompt, id));
    Times times;
    for (uint64_t id = 1; id <= 3; ++id)
      times.ttft = Ttft(tiered, Of(10 + id, std::to_string(id), Tokens(kPrompt, id), 1));
    const auto layers = static_cast<int64_t>(GetParam().model.windows.size());
    const double bytes = 8 * (kPrompt - 16);
    EXPECT_EQ(tiered.rig().Step().stats.tiers.host_loaded_tokens, 3 * (kPrompt - 16));
    times.layer = kLatency + Nanos(static_cast<Nanos::rep>(std::ceil(1e9 * bytes / bytes_per_second)));
    times.load = layers * times.layer;
    times.step = layers * kLayer;
    return times;
  }
};

// Without overlap it would be all of the load, then all of the step.
TEST_P(Overlap, WhereLayersArriveSoonerThanTheyAreComputedOnlyTheFirstIsAwaited) {
  const Times times = Resume(kRate);
  EXPECT_LT(times.load, times.step);
  EXPECT_EQ(times.ttft, kBetween + times.layer + kBetween + times.step);
}

TEST_P(Overlap, WhereTheyArriveLaterOnlyTheLastIsComputedAfterTheLoad) {
  const Times times = Resume(kRate / 5);
  EXPECT_GT(times.load, times.step);
  EXPECT_EQ(times.ttft, kBetween + times.load + kLayer);
}

TEST_P(Overlap, WhatAStepWaitsForLayersIsNoTimeOfComputing) {
  TieredRig::Options options = With();
  options.link.bytes_per_second = kRate / 5;
  TieredRig tiered(options);
  Engine& engine = tiered.rig().engine();
  HandDown(tiered, 1, Tokens(kPrompt, 1));
  const EngineStats before = tiered.rig().Step().stats;

  Nanos spent{0}, last{0}, last_stalled{0}, stalled{0};
  const auto measured = [&](StepInput input) {
    const std::optional<Nanos> due = engine.next_due();
    if (engine.awaits_transfers() && due && *due > tiered.clock().Now()) {
      spent += input.waited = *due - tiered.clock().Now();
      tiered.rig().Advance(input.waited);
    }
    input.last_duration = last;
    input.last_stalled = last_stalled;
    const Nanos begun = tiered.clock().Now() + kBetween, before_it = engine.stalled();
    const StepOutput out = tiered.rig().Step(std::move(input));
    spent += last = tiered.clock().Now() - begun;
    stalled += last_stalled = engine.stalled() - before_it;
    return out.stats;
  };
  StepInput input;
  input.arrivals.push_back(Of(11, "1", Tokens(kPrompt, 1), 3));
  measured(std::move(input));
  while (!engine.idle()) measured({});
  const EngineStats after = measured({});

  const auto layers = static_cast<int64_t>(GetParam().model.windows.size());
  const Nanos compute = after.time.compute - before.time.compute;
  EXPECT_GT(stalled, Nanos(0));
  EXPECT_EQ(compute, static_cast<int64_t>(after.steps - before.steps) * layers * kLayer);
  EXPECT_EQ(after.time.transfers - before.time.transfers, spent - compute);
}

TEST_P(Overlap, WhatComesWhileAStepRunsIsNotThoughtToHaveComeAtOnce) {
  for (const double rate : {kRate, kRate / 5}) {
    TieredRig::Options options = With();
    options.link.bytes_per_second = rate;
    options.host_rate = TierRate{ToSeconds(kLatency), rate};
    TieredRig tiered(options);
    const auto thought = [&] {
      Suspend(tiered, 1);
      const SessionCommand show{.id = SessionCommandId(1 + tiered.rig().session_answers.size()),
                                .verb = SessionVerb::kShow,
                                .name = {"", "1"}};
      tiered.rig().Command(show);
      tiered.rig().Step();
      return tiered.rig().session_answers.at(show.id).sessions.front().load_seconds.value();
    };
    HandDown(tiered, 1, Tokens(kPrompt, 1));
    const double before = thought();
    for (uint64_t id = 11; id <= 25; ++id) {
      Ttft(tiered, Of(id, "1", Tokens(kPrompt, 1), 1));
      Suspend(tiered, 1);
    }
    EXPECT_NEAR(thought(), before, before / 3);
  }
}

INSTANTIATE_TEST_SUITE_P(OverALink, Overlap,
                         testing::Values(TieredCase{
                             "EightLayers", Device::kSimLink, {.windows = std::vector<uint32_t>(8, 0)}}),
                         [](const auto& info) { return info.param.name; });

// Whichever copy fails, the step's other sequences go on as if nothing had happened, and so does the one that lacks it,
// which computes it.
TEST_P(Arrivals, ALayerThatFailsToArriveTakesItsSequenceOutOfTheStep) {
  uint64_t failed = 0, requeued = 0;
  for (uint64_t nth = 1; nth <= GetParam().model.windows.size(); ++nth) {
    TieredRig tiered(With());
    HandDown(tiered, 1, Tokens(kPrompt, 1));
    HandDown(tiered, 2, Tokens(kPrompt, 2));
    const GenerateRequest others[] = {Request(20, Tokens(40, 20), 40), Of(21, "2", Tokens(kPrompt, 2), 9)};
    const GenerateRequest late = Of(22, "1", Tokens(kPrompt, 1), 9);
    for (const GenerateRequest& request : others) tiered.rig().Arrive(request);
    while (!tiered.rig().outputs.contains(std::pair(RequestId(21), 0u))) Go(tiered);
    tiered.rig().memory().FailCopyIn(nth);
    StepInput input;
    input.arrivals.push_back(late);
    Go(tiered, std::move(input));
    while (!tiered.rig().engine().idle()) Go(tiered);
    for (const GenerateRequest& request : others) {
      EXPECT_EQ(tiered.rig().outputs[std::pair(request.id, 0u)], Expected(tiered.rig().executor(), request, 0));
    }
    EXPECT_EQ(tiered.rig().outputs[std::pair(late.id, 0u)], Expected(tiered.rig().executor(), late, 0));
    failed += tiered.rig().memory().failed();
    requeued += tiered.rig().Step().stats.tiers.failed_loads;
    ExpectNothingHeld(tiered);
  }
  EXPECT_GT(failed, 0u);
  EXPECT_EQ(requeued, failed);
}

TEST_P(Arrivals, ACancelInTheMiddleLeavesNothing) {
  for (int steps = 0; steps < 12; ++steps) {
    TieredRig tiered(With());
    HandDown(tiered, 1, Tokens(kPrompt, 1));
    tiered.rig().Arrive(Request(20, Tokens(40, 20), 10));
    tiered.rig().Arrive(Of(21, "1", Tokens(kPrompt, 1), 4));
    for (int i = 0; i < steps; ++i) tiered.rig().Step();
    tiered.rig().Cancel(RequestId(21));
    while (!tiered.rig().engine().idle()) Go(tiered);
    ExpectNothingHeld(tiered);
    Ask(tiered, Of(22, "1", Tokens(kPrompt, 1), 4));
  }
}

// Bit-equal whatever comes, fails, is cancelled, preempted and checked meanwhile.
TEST_P(Arrivals, WhateverHappensAnswersAreThoseOfTheRequestAlone) {
  uint64_t loaded = 0, failed = 0, verified = 0, compared = 0, preempted = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    SplitMix64 random(seed);
    TieredRig::Options options = With();
    options.slots = 40 * static_cast<uint32_t>(exec::FakeExecutor::LayoutFor(options.model).groups.size());
    options.engine.admission = seed % 2 == 0 ? "expected" : "guaranteed";
    options.engine.verify_hits = 0.2;
    options.link.bytes_per_second = seed % 4 < 2 ? kRate : 10 * kRate;
    TieredRig tiered(options);
    if (seed % 3 != 0) tiered.rig().memory().FailSome(0.02, seed);
    std::map<RequestId, GenerateRequest> asked;
    EngineStats stats;
    for (uint64_t step = 0, id = 0; step < 1500; ++step) {
      StepInput input;
      if (random.Below(8) == 0) {
        const uint64_t session = random.Below(6);
        GenerateRequest request = Of(++id, std::to_string(session), Tokens(100 + 40 * session, session),
                                     static_cast<uint32_t>(1 + random.Below(30)));
        asked.emplace(request.id, request);
        input.arrivals.push_back(std::move(request));
      }
      if (id > 0 && random.Below(30) == 0) input.cancels.push_back(RequestId(1 + random.Below(id)));
      if (random.Below(10) == 0) {
        SessionCommand command{.id = SessionCommandId(step), .verb = SessionVerb::kSuspend};
        command.name.id = std::to_string(random.Below(6));
        input.session_commands.push_back(std::move(command));
      }
      stats = Go(tiered, std::move(input)).stats;
      ASSERT_EQ(tiered.host().Violations(), std::vector<std::string>());
    }
    while (!tiered.rig().engine().idle()) Go(tiered);
    for (const auto& [id, request] : asked) {
      const auto finish = tiered.rig().finishes.find(std::pair(id, 0u));
      if (finish == tiered.rig().finishes.end() || finish->second.reason != FinishReason::kLength) continue;
      EXPECT_EQ(tiered.rig().outputs[std::pair(id, 0u)], Expected(tiered.rig().executor(), request, 0));
      ++compared;
    }
    loaded += stats.tiers.host_loaded_tokens;
    failed += stats.tiers.failed_loads;
    verified += stats.hits_verified;
    preempted += stats.preemptions;
    ExpectNothingHeld(tiered);
  }
  EXPECT_GT(compared, 500u);
  EXPECT_GT(loaded, 1000u);
  EXPECT_GT(failed, 0u);
  EXPECT_GT(verified, 0u);
  const bool sliding = GetParam().model.windows.front() > 0;  // then less is ever taken than the pool has
  EXPECT_TRUE(sliding || preempted > 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, Arrivals,
    testing::Values(TieredCase{"AtOnce", Device::kCpu, {.windows = std::vector<uint32_t>(6, 0)}},
                    TieredCase{"OverALink", Device::kSimLink, {.windows = std::vector<uint32_t>(6, 0)}},
                    TieredCase{"SlidingOverALink", Device::kSimLink, {.windows = {24, 0, 24, 40, 0, 24}}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cachalot::engine
