// KV that comes up before a request asks for it, and requests that come meanwhile: none waits for it longer than for a
// load of its own.
#include <map>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "engine/testing/tiered_rig.h"

namespace cachalot::engine {
namespace {

// Steps take the time that the curve says, and the disk as long as its rate: all in virtual time.
class Prefetches : public testing::TestWithParam<TieredCase> {
 protected:
  static constexpr uint32_t kPrompt = 1608;
  static constexpr uint64_t kStored = 4;  // prompts

  TieredRig::Options With(uint32_t max_sequences = 4) const {
    return {.engine = {.max_sequences = max_sequences, .step_rows = 64, .prefill_chunk = 64},
            .model = GetParam().model,
            .slots = 2400,
            .device = GetParam().device,
            .disk_bytes = 64 << 20,
            .session_store = true,
            .faults = {.bytes_per_second = 1e9},
            .reads = 1,
            .curve = StepCurve{1e-4, 1e-4}};
  }

  // A step, and time passes as long as it takes; where there is nothing to run, until something comes.
  StepOutput Step(TieredRig& tiered, StepInput input = {}) {
    Rig& rig = tiered.rig();
    input.last_duration = std::exchange(last_duration_, Nanos(0));
    StepOutput out = rig.Step(std::move(input));
    last_duration_ = Nanos(static_cast<int64_t>(out.predicted_seconds * 1e9));
    rig.Advance(last_duration_);
    for (const TokenEvent& e : out.tokens) first_token_at_.try_emplace(e.id, tiered.clock().Now());
    for (const FinishEvent& e : out.finishes) ended_at_.try_emplace(e.id, tiered.clock().Now());
    const std::optional<Nanos> due = rig.engine().next_due();
    const bool rests = rig.engine().idle() || rig.engine().awaits_transfers();
    if (rests && due && *due > tiered.clock().Now()) rig.Advance(*due - tiered.clock().Now());
    return out;
  }
  void Begin(TieredRig& tiered, const GenerateRequest& request) {
    StepInput input;
    input.arrivals.push_back(request);
    Step(tiered, std::move(input));
  }
  const SessionAnswer* Answer(TieredRig& tiered) const {
    const auto found = tiered.rig().session_answers.find(SessionCommandId(1));
    return found == tiered.rig().session_answers.end() ? nullptr : &found->second;
  }

  Nanos FirstTokenAt(TieredRig& tiered, RequestId id) {
    while (!first_token_at_.contains(id)) Step(tiered);
    return first_token_at_[id];
  }
  // Seconds from now to its first token.
  double Ttft(TieredRig& tiered, const GenerateRequest& request) {
    const Nanos begun = tiered.clock().Now();
    Begin(tiered, request);
    return ToSeconds(FirstTokenAt(tiered, request.id) - begun);
  }
  FinishEvent Finish(TieredRig& tiered, const GenerateRequest& request) {
    while (!tiered.rig().finishes.contains({request.id, 0u})) Step(tiered);
    EXPECT_EQ(tiered.rig().outputs[std::pair(request.id, 0u)], Expected(tiered.rig().executor(), request, 0));
    return tiered.rig().finishes.at({request.id, 0u});
  }

  // Some prompts are on disk, and nowhere else; that is now as fast as is said.
  static void Store(TieredRig& tiered, double bytes_per_second) {
    for (uint64_t i = 1; i <= kStored; ++i) Ask(tiered, Stored(i, i));
    tiered.ChangeDisk(bytes_per_second);
    tiered.Restart();
  }
  // Others show how fast it is.
  void Learn(TieredRig& tiered) {
    for (uint64_t i = 3; i <= kStored; ++i) {
      const SessionCommandId id(i);
      tiered.rig().Command({.id = id, .verb = SessionVerb::kPrefetch, .prompt = Tokens(kPrompt, i)});
      while (!tiered.rig().session_answers.contains(id)) Step(tiered);
    }
  }
  // A prompt is on its way up.
  void BeginPrefetch(TieredRig& tiered) {
    tiered.rig().Command({.id = SessionCommandId(1), .verb = SessionVerb::kPrefetch, .prompt = Tokens(kPrompt, 1)});
    tiered.rig().Step();
    ASSERT_GT(tiered.store().queued_load_bytes(), 0u);
  }
  static GenerateRequest Stored(uint64_t id, uint64_t prompt) { return Request(id, Tokens(kPrompt, prompt), 2); }

  double RecomputeSeconds() {
    TieredRig::Options options = With();
    options.disk_bytes = 0;
    TieredRig tiered(options);
    return Ttft(tiered, Stored(99, 1));
  }
  // Of a prompt's KV, about.
  double Bytes() const {
    const exec::FakeOptions& model = GetParam().model;
    const KvLayout layout = exec::FakeExecutor::LayoutFor(model);
    double blocks = 0;
    for (const auto& group : layout.groups) blocks += group.window == 0 ? kPrompt / 16.0 : group.window / 16.0 + 1;
    return static_cast<double>(layout.slot_bytes) * blocks;
  }
  static void ExpectNothingHeld(TieredRig& tiered) {
    const EngineStats stats = tiered.rig().Step().stats;
    EXPECT_EQ(stats.in_use_slots(), 0u);
    EXPECT_EQ(stats.promised_slots, 0u);
  }

  std::map<RequestId, Nanos> first_token_at_, ended_at_;

 private:
  Nanos last_duration_{0};
};

// Nothing is known yet of the disk, and it is slow.
TEST_P(Prefetches, OfARequestThatWaitsCostItNothingWhereTheDiskIsSlowerThanWasThought) {
  const double recompute = RecomputeSeconds();
  TieredRig tiered(With(1));
  Store(tiered, Bytes() / recompute / 100);
  const GenerateRequest first = Request(11, Tokens(40, 90), 20), second = Stored(12, 1);
  Begin(tiered, first);
  Begin(tiered, second);
  EXPECT_GT(tiered.store().queued_load_bytes(), 0u);
  Finish(tiered, first);
  EXPECT_LE(ToSeconds(FirstTokenAt(tiered, second.id) - ended_at_[first.id]), 1.2 * recompute);
  Finish(tiered, second);
  ExpectNothingHeld(tiered);
}

TEST_P(Prefetches, OfARequestThatWaitsAreNotBegunWhereComputingIsCheaper) {
  const double recompute = RecomputeSeconds();
  TieredRig tiered(With(1));
  Store(tiered, Bytes() / recompute / 100);
  Learn(tiered);
  const GenerateRequest first = Request(11, Tokens(40, 90), 20), second = Stored(12, 1);
  Begin(tiered, first);
  Begin(tiered, second);
  while (!tiered.rig().finishes.contains({first.id, 0u})) {
    Step(tiered);
    EXPECT_EQ(tiered.store().queued_load_bytes(), 0u);
  }
  EXPECT_LE(ToSeconds(FirstTokenAt(tiered, second.id) - ended_at_[first.id]), 1.2 * recompute);
  Finish(tiered, second);
}

TEST_P(Prefetches, OfACommandHoldUpNoRequest) {
  const double recompute = RecomputeSeconds();
  TieredRig tiered(With());
  Store(tiered, Bytes() / recompute / 100);
  BeginPrefetch(tiered);
  const GenerateRequest request = Stored(11, 1);
  EXPECT_LE(Ttft(tiered, request), 1.2 * recompute);
  Finish(tiered, request);
  while (Answer(tiered) == nullptr) Step(tiered);
  EXPECT_TRUE(Answer(tiered)->status.ok());
  ExpectNothingHeld(tiered);
}

TEST_P(Prefetches, OfACommandEndThoughTheDiskHangs) {
  TieredRig tiered(With());
  Store(tiered, 1);
  BeginPrefetch(tiered);
  const Nanos begun = tiered.clock().Now();
  while (Answer(tiered) == nullptr && tiered.clock().Now() - begun < std::chrono::minutes(11)) Step(tiered);
  ASSERT_NE(Answer(tiered), nullptr);
  EXPECT_TRUE(Answer(tiered)->status.ok());
  EXPECT_EQ(Answer(tiered)->moved_tokens, 0u);
  ExpectNothingHeld(tiered);
}

// Most of it has come when its request does.
TEST_P(Prefetches, WhatHasComeUpServesTheRequestThatTakesItOver) {
  const double recompute = RecomputeSeconds();
  TieredRig tiered(With());
  Store(tiered, Bytes() / recompute);
  Learn(tiered);
  const uint64_t read_before = tiered.store().stats().loaded_bytes;
  BeginPrefetch(tiered);
  tiered.rig().Advance(Nanos(static_cast<int64_t>(0.75 * recompute * 1e9)));
  const GenerateRequest request = Stored(11, 1);
  EXPECT_LE(Ttft(tiered, request), 0.35 * recompute);
  EXPECT_GT(Finish(tiered, request).disk_tokens, kPrompt / 2);
  EXPECT_LE(static_cast<double>(tiered.store().stats().loaded_bytes - read_before), Bytes());
  while (Answer(tiered) == nullptr) Step(tiered);
  ExpectNothingHeld(tiered);
}

// It shares the beginning of what is on its way up.
TEST_P(Prefetches, WhoGoesOnOtherwiseDoesWithout) {
  const double recompute = RecomputeSeconds();
  TieredRig tiered(With());
  Store(tiered, Bytes() / recompute / 100);
  BeginPrefetch(tiered);
  GenerateRequest request = Stored(11, 1);
  for (size_t i = 160; i < request.prompt.size(); ++i) request.prompt[i] = static_cast<TokenId>(i % 7);
  EXPECT_LE(Ttft(tiered, request), 1.2 * recompute);
  Finish(tiered, request);
  while (Answer(tiered) == nullptr) Step(tiered);
  ExpectNothingHeld(tiered);
}

TEST_P(Prefetches, GiveWayToARequestThatFindsNoRoomBesideThem) {
  const double recompute = RecomputeSeconds();
  TieredRig::Options options = With();
  options.slots = options.model.windows == SlidingModel().windows ? 190 : 150;  // enough for one of the two
  TieredRig tiered(options);
  Store(tiered, 1);
  BeginPrefetch(tiered);
  const GenerateRequest request = Request(11, Tokens(kPrompt, 91), 2);
  EXPECT_LE(Ttft(tiered, request), 1.2 * recompute);
  Finish(tiered, request);
  while (Answer(tiered) == nullptr) Step(tiered);
  ExpectNothingHeld(tiered);
}

// In pools that are too small for another, it shares the first half of what comes up, which was hot and idle before.
TEST_P(Prefetches, GiveNoWayToARequestThatFindsNoRoomThenEither) {
  constexpr uint32_t kShared = 800;
  uint32_t in_vain = 0;
  for (uint32_t more = 0; more < 60; ++more) {
    TieredRig::Options options = With();
    options.slots = (options.model.windows == SlidingModel().windows ? 150 : 110) + 2 * more;
    TieredRig tiered(options);
    Store(tiered, 1e9);
    GenerateRequest half = Stored(11, 1), running = Request(12, Tokens(20, 92), 300);
    half.prompt.resize(kShared + 1);
    Begin(tiered, half);
    Finish(tiered, half);
    Begin(tiered, running);
    tiered.rig().Command({.id = SessionCommandId(1), .verb = SessionVerb::kPrefetch, .prompt = Tokens(kPrompt, 1)});
    for (int i = 0; i < 2 && Answer(tiered) == nullptr; ++i) tiered.rig().Step();
    const bool comes_up = tiered.rig().engine().awaits_transfers() || tiered.store().queued_load_bytes() > 0;
    if (!comes_up || Answer(tiered) != nullptr) continue;
    GenerateRequest other = Stored(13, 93);
    std::copy_n(half.prompt.begin(), kShared, other.prompt.begin());
    Begin(tiered, other);
    if (tiered.rig().Step().stats.waiting_requests == 0) continue;
    EXPECT_GT(tiered.store().queued_load_bytes(), 0u) << options.slots << " slots";
    ++in_vain;
  }
  EXPECT_GT(in_vain, 0u);
}

TEST_P(Prefetches, WhatIsTakenOverAndDoesNotFitIsGivenUpForWhatFits) {
  const double recompute = RecomputeSeconds();
  for (uint32_t slots = 100; slots < 160; ++slots) {
    TieredRig::Options options = With();
    options.slots = slots;
    TieredRig tiered(options);
    if (!tiered.rig().Arrive(Stored(90, 90)).rejections.empty()) continue;  // never
    tiered.rig().RunToEnd();
    Store(tiered, 2 * Bytes() / recompute);
    Learn(tiered);
    tiered.rig().Command({.id = SessionCommandId(1), .verb = SessionVerb::kPrefetch, .prompt = Tokens(kPrompt, 1)});
    tiered.rig().Step();
    const GenerateRequest request = Stored(11, 1);
    EXPECT_LE(Ttft(tiered, request), 1.2 * recompute) << slots << " slots";
    Finish(tiered, request);
    while (Answer(tiered) == nullptr) Step(tiered);
    ExpectNothingHeld(tiered);
  }
}

TEST_P(Prefetches, ThatGiveWayAgainAndAgainAreAnsweredAllTheSame) {
  TieredRig::Options options = With();
  options.slots = options.model.windows == SlidingModel().windows ? 190 : 150;  // enough for one of the two
  TieredRig tiered(options);
  Store(tiered, 1);
  BeginPrefetch(tiered);
  const Nanos begun = tiered.clock().Now();
  for (uint64_t id = 11; Answer(tiered) == nullptr; ++id) {
    ASSERT_LT(tiered.clock().Now() - begun, std::chrono::minutes(2));
    tiered.rig().Arrive(Request(id, Tokens(kPrompt, 80 + id), 2));
    tiered.rig().Cancel(RequestId(id));
    tiered.rig().Advance(std::chrono::milliseconds(30));
    tiered.rig().Step();  // it is on its way up again
  }
  ExpectNothingHeld(tiered);
}

// Loading takes a tenth of the time of computing.
TEST_P(Prefetches, WhatARequestLoadsIsReadBeforeWhatComesUpAhead) {
  const double recompute = RecomputeSeconds();
  TieredRig tiered(With());
  Store(tiered, 10 * Bytes() / recompute);
  Learn(tiered);
  BeginPrefetch(tiered);
  const GenerateRequest request = Stored(11, 2);
  EXPECT_LE(Ttft(tiered, request), 0.14 * recompute);
  EXPECT_GE(Finish(tiered, request).disk_tokens, kPrompt * 7 / 8);
  EXPECT_EQ(Answer(tiered), nullptr) << "it is still on its way up";
}

// Others come just after it.
TEST_P(Prefetches, WhatWasTakenOverIsReadAsWhatItsRequestWouldHaveLoaded) {
  const double recompute = RecomputeSeconds();
  TieredRig tiered(With());
  Store(tiered, 10 * Bytes() / recompute);
  Learn(tiered);
  BeginPrefetch(tiered);
  const GenerateRequest first = Stored(11, 1), second = Stored(12, 2);
  Begin(tiered, first);
  Begin(tiered, second);
  EXPECT_LE(FirstTokenAt(tiered, first.id), FirstTokenAt(tiered, second.id));
  EXPECT_GE(Finish(tiered, first).disk_tokens, kPrompt * 7 / 8);
  Finish(tiered, second);
}

TEST_P(Prefetches, ARequestThatWaitsIsHotBeforeItsTurn) {
  TieredRig tiered(With(1));
  Store(tiered, 1e9);
  const GenerateRequest first = Request(11, Tokens(40, 90), 200), second = Stored(12, 1), third = Stored(13, 2);
  Begin(tiered, first);
  Begin(tiered, second);
  Begin(tiered, third);
  Finish(tiered, first);
  for (const GenerateRequest& request : {second, third}) {
    const FinishEvent finish = Finish(tiered, request);
    EXPECT_GE(finish.cached_tokens, kPrompt - 16);
    EXPECT_EQ(finish.disk_tokens, 0u);  // it was there
  }
  EXPECT_GE(tiered.rig().Step().stats.tiers.prefetched_tokens, 2 * (kPrompt - 16));
}

TEST_P(Prefetches, WhoSaidWhenItWillBeBackFindsItsKvHotByThenAndNotLongBefore) {
  TieredRig tiered(With());
  GenerateRequest request = Stored(1, 1);
  request.session = SessionName{"", "a"};
  request.returns.in = std::chrono::seconds(60);
  Begin(tiered, request);
  Finish(tiered, request);
  const Nanos back = tiered.clock().Now() + *request.returns.in;
  tiered.rig().Command({.id = SessionCommandId(1), .verb = SessionVerb::kSuspend, .name = {"", "a"}});
  for (int i = 0; i < 20'000 && Answer(tiered) == nullptr; ++i) tiered.rig().Step();
  ASSERT_NE(Answer(tiered), nullptr);
  ASSERT_EQ(Answer(tiered)->sessions.front().hot.tokens, 0u);

  tiered.rig().Advance(back - std::chrono::seconds(5) - tiered.clock().Now());
  for (int i = 0; i < 1000; ++i) tiered.rig().Step();
  EXPECT_EQ(tiered.rig().Step().stats.tiers.prefetched_tokens, 0u);
  tiered.rig().Advance(back - std::chrono::milliseconds(100) - tiered.clock().Now());
  for (int i = 0; i < 2000; ++i) tiered.rig().Step();
  EXPECT_GE(tiered.rig().Step().stats.tiers.prefetched_tokens, kPrompt - 16);
  request.id = RequestId(2);
  Begin(tiered, request);
  const FinishEvent finish = Finish(tiered, request);
  EXPECT_GE(finish.cached_tokens, kPrompt - 16);
  EXPECT_EQ(finish.disk_tokens, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, Prefetches,
                         testing::Values(TieredCase{"Full", Device::kCpu, {}},
                                         TieredCase{"Sliding", Device::kCpu, SlidingModel()}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cachalot::engine
