#include <gtest/gtest.h>

#include "engine/testing/tiered_rig.h"
#include "kv/identity.h"

namespace cachalot::engine {
namespace {

constexpr uint64_t kHostBytes = 256 << 10;

EngineOptions Options() { return {.max_sequences = 8, .step_rows = 64, .prefill_chunk = 64}; }

class Host : public testing::TestWithParam<TieredCase> {
 protected:
  // A link over which copying is sooner than computing, and host memory beyond the pool; no disk.
  TieredRig::Options With() const {
    return {.engine = Options(),
            .model = GetParam().model,
            .slots = 200,
            .device = GetParam().device,
            .link = {.bytes_per_second = 1e9, .latency = Nanos(200)},
            .disk_bytes = 0,
            .host_bytes = kHostBytes};
  }

  static uint32_t Ask(TieredRig& tiered, const GenerateRequest& request) {
    const uint32_t cached = engine::Ask(tiered, request);
    EXPECT_EQ(tiered.host().Violations(), std::vector<std::string>());
    return cached;
  }
  static EngineStats Settled(TieredRig& tiered) {
    for (int i = 0; i < 100; ++i) tiered.rig().Step();
    return tiered.rig().Step().stats;
  }
};

TEST_P(Host, WhatTheHotPoolHasNoRoomForGoesThere) {
  TieredRig tiered(With());
  for (uint64_t i = 1; i <= 8; ++i) {
    Ask(tiered, Request(i, Tokens(400, i), 8));
    Settled(tiered);
  }
  const EngineStats stats = Settled(tiered);
  EXPECT_GT(stats.tiers.host_stored_bytes, 0u);
  EXPECT_GT(stats.tiers.host_cached_bytes, 0u);
  EXPECT_EQ(stats.tiers.host_moving_bytes, 0u);
  EXPECT_EQ(stats.tiers.host_cached_bytes + stats.tiers.host_free_bytes + stats.tiers.host_overhead_bytes,
            stats.tiers.host_limit_bytes);
}

TEST_P(Host, WhatIsThereIsNotComputedAgain) {
  TieredRig::Options options = With();
  options.slots = 80;  // for one of them
  TieredRig tiered(options);
  for (uint64_t i = 1; i <= 8; ++i) {
    Ask(tiered, Request(i, Tokens(410, i), 8));
    Settled(tiered);
  }
  uint64_t cached = 0;
  for (uint64_t i = 1; i <= 8; ++i) {
    cached += Ask(tiered, Request(10 + i, Tokens(410, i), 8));
    Settled(tiered);
  }
  if (GetParam().device == Device::kSimLink) return;  // what leaves when slots are needed at once is dropped there
  EXPECT_GE(cached, 8 * 400u);
  EXPECT_GE(Settled(tiered).tiers.host_loaded_tokens, 6 * 400u);
}

TEST_P(Host, WhatSomebodyWaitsToReadStaysThere) {
  TieredRig::Options options = With();
  options.engine.max_sequences = 1;
  options.host_bytes = kHostBytes / 2;
  options.slots = GetParam().model.windows.size() > 1 ? 90 : 60;  // not for two of them
  TieredRig tiered(options);
  GenerateRequest awaited = Request(1, Tokens(800, 1), 8);
  awaited.session = SessionName{"", "a"};
  Ask(tiered, awaited);
  tiered.rig().Command({.id = SessionCommandId(1), .verb = SessionVerb::kSuspend, .name = {"", "a"}});
  ASSERT_GT(Settled(tiered).tiers.host_stored_bytes, 0u);
  StepInput input;
  for (uint64_t i = 10; i < 50; ++i) input.arrivals.push_back(Request(i, Tokens(16, i), 400));
  awaited.id = RequestId(99);
  const std::vector<TokenId> answer = Expected(tiered.rig().executor(), awaited, 0);
  awaited.prompt.insert(awaited.prompt.end(), answer.begin(), answer.end());
  input.arrivals.push_back(awaited);
  tiered.rig().Step(std::move(input));
  tiered.rig().RunToEnd();
  const EngineStats stats = Settled(tiered);
  EXPECT_GT(stats.tiers.host_evicted_cells, 0u);  // those before it left more there than there is room for
  EXPECT_GE(tiered.rig().finishes.at({awaited.id, 0u}).cached_tokens, 784u);
}

TEST_P(Host, BytesAreCountedEitherWay) {
  TieredRig tiered(With());
  GenerateRequest request = Request(1, Tokens(400, 1), 8);
  request.session = SessionName{"", "a"};
  Ask(tiered, request);
  tiered.rig().Command({.id = SessionCommandId(1), .verb = SessionVerb::kSuspend, .name = {"", "a"}});
  const TierStats down = Settled(tiered).tiers;
  EXPECT_GT(down.host_stored_bytes, 0u);
  EXPECT_EQ(down.host_loaded_bytes, 0u);
  request.id = RequestId(2);
  EXPECT_EQ(Ask(tiered, request), 384u);
  const TierStats up = Settled(tiered).tiers;
  const uint64_t slot_bytes = tiered.rig().memory().slot_bytes();
  EXPECT_EQ(up.host_loaded_bytes % slot_bytes, 0u);
  EXPECT_GE(up.host_loaded_bytes, 24 * slot_bytes) << "all blocks of one group";
  EXPECT_LE(up.host_loaded_bytes, down.host_stored_bytes);
}

// Of a session that goes down and comes up again, without failures, and with a copy down and all copies up that fail.
TEST_P(Host, BytesOfCopiesThatFailAreNotCounted) {
  std::vector<uint64_t> stored, loaded;
  for (const bool fails : {false, true}) {
    TieredRig tiered(With());
    GenerateRequest request = Request(1, Tokens(400, 1), 8);
    request.session = SessionName{"", "a"};
    Ask(tiered, request);
    if (fails) tiered.rig().memory().FailCopyOut(1);
    tiered.rig().Command({.id = SessionCommandId(1), .verb = SessionVerb::kSuspend, .name = {"", "a"}});
    stored.push_back(Settled(tiered).tiers.host_stored_bytes);
    if (fails) tiered.rig().memory().FailSome(1, 1);
    request.id = RequestId(2);
    Ask(tiered, request);
    loaded.push_back(Settled(tiered).tiers.host_loaded_bytes);
  }
  const uint64_t slot_bytes = exec::FakeExecutor::LayoutFor(GetParam().model).slot_bytes;
  EXPECT_LT(stored[1], stored[0]);
  EXPECT_GE(stored[1], stored[0] - 4 * slot_bytes) << "a block";
  EXPECT_GT(loaded[0], 0u);
  EXPECT_EQ(loaded[1], 0u);
}

TEST_P(Host, WhatIsToBeOverwrittenOrWillNotBeUsedAgainDoesNotGoThere) {
  TieredRig tiered(With());
  for (uint64_t i = 1; i <= 8; ++i) {
    GenerateRequest request = Request(i, Tokens(400, i), 8);
    request.retention.scrub = i % 2 == 0;
    if (i % 2 == 1) request.retention.priority = RetentionPriority::kLow;
    Ask(tiered, request);
    Settled(tiered);
  }
  EXPECT_GT(Settled(tiered).slots_evicted, 0u);
  EXPECT_EQ(Settled(tiered).tiers.host_stored_bytes, 0u);
}

TEST_P(Host, ClearingLeavesNothingThere) {
  for (int steps = 0; steps < 10; ++steps) {
    TieredRig tiered(With());
    for (uint64_t i = 1; i <= 6; ++i) Ask(tiered, Request(i, Tokens(400, i), 8));
    for (int i = 0; i < steps; ++i) tiered.rig().Step();
    StepInput input;
    input.inquiries.push_back({InquiryId(1), InquiryKind::kClear, {}});
    EXPECT_TRUE(tiered.rig().Step(std::move(input)).answers.front().cleared.ok());
    EXPECT_EQ(Settled(tiered).tiers.host_cached_bytes, 0u);
  }
}

// What a request finds there is what it would compute, whatever goes down, comes up and is cancelled meanwhile.
TEST_P(Host, WhateverHappensAnswersAreThoseOfTheRequestAlone) {
  uint64_t compared = 0, loaded = 0, verified = 0;
  EngineStats stats;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SplitMix64 random(seed);
    TieredRig::Options options = With();
    options.slots = 160;
    options.host_bytes = 48 << 10;
    options.link.bytes_per_second = seed % 2 == 0 ? 1e9 : 3e7;
    options.engine.admission = seed % 2 == 0 ? "expected" : "guaranteed";
    options.engine.verify_hits = 0.1;
    TieredRig tiered(options);
    PromptMaker prompts(seed, 250);
    std::map<RequestId, GenerateRequest> asked;
    for (uint64_t step = 0, id = 0; step < 2500; ++step) {
      StepInput input;
      if (random.Below(6) == 0) {
        GenerateRequest request = Request(++id, prompts.Next(), static_cast<uint32_t>(1 + random.Below(40)));
        request.scope.salt.low = random.Below(2);
        asked.emplace(request.id, request);
        input.arrivals.push_back(std::move(request));
      }
      if (id > 0 && random.Below(30) == 0) input.cancels.push_back(RequestId(1 + random.Below(id)));
      stats = tiered.rig().Step(std::move(input)).stats;
      ASSERT_EQ(tiered.host().Violations(), std::vector<std::string>());
    }
    tiered.rig().RunToEnd();
    for (const auto& [id, request] : asked) {
      const auto finish = tiered.rig().finishes.find(std::pair(id, 0u));
      if (finish == tiered.rig().finishes.end() || finish->second.reason != FinishReason::kLength) continue;
      EXPECT_EQ(tiered.rig().outputs[std::pair(id, 0u)], Expected(tiered.rig().executor(), request, 0));
      ++compared;
    }
    EXPECT_GT(stats.tiers.host_stored_bytes, 0u);
    EXPECT_GT(stats.tiers.host_evicted_cells, 0u);
    loaded += stats.tiers.host_loaded_tokens;
    verified += stats.hits_verified;
    const EngineStats settled = Settled(tiered);
    EXPECT_EQ(settled.tiers.host_moving_bytes, 0u);
    EXPECT_EQ(settled.in_use_slots(), 0u);
  }
  EXPECT_GT(compared, 500u);
  EXPECT_GT(loaded, 0u);
  EXPECT_GT(verified, 0u);
}

// The disk has all of full attention, and the windows before the ends of what was asked; host memory has lost the
// former, and still has the windows before any other block.
TEST(HostAndDisk, PartsOfABlockComeFromWhereTheyAre) {
  TieredRig tiered({.engine = Options(), .model = SlidingModel(), .host_bytes = kHostBytes});
  const std::vector<TokenId> tokens = Tokens(400, 1);
  GenerateRequest request = Request(1, tokens, 8);
  request.session = SessionName{"", "a"};
  Ask(tiered, request);
  SessionCommand suspend{.id = SessionCommandId(1), .verb = SessionVerb::kSuspend};
  suspend.name.id = "a";
  tiered.rig().Command(suspend);
  tiered.rig().WriteAll();
  EXPECT_EQ(tiered.rig().Step().stats.idle_slots, 0u);
  for (const Digest& key : kv::BlockKeys({1}, {}, 16, tokens)) tiered.host().Erase(tier::HostKey{key, 0});
  GenerateRequest other = Request(9, tokens, 8);
  other.prompt.resize(250);
  other.prompt.insert(other.prompt.end(), 30, 7);
  const auto before = tiered.rig().Step().stats.tiers;
  EXPECT_EQ(Ask(tiered, other), 240u);
  EXPECT_EQ(tiered.rig().Step().stats.tiers.loaded_tokens - before.loaded_tokens, 240u);
  EXPECT_EQ(tiered.host().Violations(), std::vector<std::string>());
}

INSTANTIATE_TEST_SUITE_P(All, Host,
                         testing::Values(TieredCase{"Full", Device::kCpu, {}},
                                         TieredCase{"Sliding", Device::kCpu, SlidingModel()},
                                         TieredCase{"FullOverALink", Device::kSimLink, {}},
                                         TieredCase{"SlidingOverALink", Device::kSimLink, SlidingModel()}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cachalot::engine
