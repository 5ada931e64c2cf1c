// Requests for KV that is on its way down when they come.
#include <map>

#include <gtest/gtest.h>

#include "engine/testing/tiered_rig.h"

namespace cachalot::engine {
namespace {

class TakeBack : public testing::TestWithParam<TieredCase> {
 protected:
  // Over a link that takes hundreds of steps to bring a block down.
  TieredRig::Options With() const {
    return {.engine = {.max_sequences = 8, .step_rows = 64, .prefill_chunk = 64},
            .model = GetParam().model,
            .slots = 400,
            .device = Device::kSimLink,
            .link = {.bytes_per_second = 1e6},
            .disk_bytes = 0,
            .host_bytes = 4 << 20,
            .curve = StepCurve{1e-2, 1e-3}};
  }
  static GenerateRequest Of(uint64_t id, const std::string& session, std::vector<TokenId> prompt) {
    GenerateRequest request = Request(id, std::move(prompt), 4);
    request.session = SessionName{"", session};
    return request;
  }
  // Its blocks are on their way to host memory afterwards.
  static void BeginSuspend(TieredRig& tiered, uint64_t command, const std::string& session) {
    tiered.rig().Command({.id = SessionCommandId(command), .verb = SessionVerb::kSuspend, .name = {"", session}});
    for (int i = 0; i < 3; ++i) tiered.rig().Step();
  }
  static bool Answered(TieredRig& tiered, uint64_t command) {
    return tiered.rig().session_answers.contains(SessionCommandId(command));
  }
  static void Settle(TieredRig& tiered) {
    for (int i = 0; i < 200; ++i) {
      tiered.rig().Advance(std::chrono::milliseconds(5));
      tiered.rig().Step();
    }
  }
};

TEST_P(TakeBack, WhatIsOnItsWayDownIsFoundWhereItIs) {
  TieredRig tiered(With());
  Ask(tiered, Of(1, "a", Tokens(203, 1)));
  BeginSuspend(tiered, 1, "a");
  ASSERT_FALSE(Answered(tiered, 1));
  EXPECT_EQ(Ask(tiered, Of(2, "a", Tokens(203, 1))), 192u);
  const StepOutput after = tiered.rig().Step();
  EXPECT_EQ(after.stats.tiers.taken_back_blocks, 12u);
  EXPECT_EQ(after.stats.tiers.host_loaded_tokens, 0u);
  Settle(tiered);
  EXPECT_TRUE(Answered(tiered, 1));
  EXPECT_EQ(tiered.host().Violations(), std::vector<std::string>());
  const EngineStats stats = tiered.rig().Step().stats;
  EXPECT_EQ(stats.in_use_slots(), 0u);
  EXPECT_EQ(stats.tiers.host_moving_bytes, 0u);
  EXPECT_EQ(Ask(tiered, Request(3, Tokens(203, 1), 4)), 202u) << "it was hot all the time";
}

TEST_P(TakeBack, APrefetchTakesItBackAsWell) {
  TieredRig tiered(With());
  Ask(tiered, Of(1, "a", Tokens(203, 1)));
  BeginSuspend(tiered, 1, "a");
  tiered.rig().Command({.id = SessionCommandId(2), .verb = SessionVerb::kPrefetch, .prompt = Tokens(203, 1)});
  for (int i = 0; i < 20; ++i) tiered.rig().Step();
  Settle(tiered);
  EXPECT_TRUE(Answered(tiered, 2));
  EXPECT_EQ(tiered.rig().Step().stats.tiers.taken_back_blocks, 12u);
  EXPECT_GE(Ask(tiered, Request(3, Tokens(203, 1), 4)), 192u);
}

TEST_P(TakeBack, OthersPromptsAndSaltsLeaveItAlone) {
  TieredRig tiered(With());
  Ask(tiered, Of(1, "a", Tokens(203, 1)));
  BeginSuspend(tiered, 1, "a");
  GenerateRequest foreign = Request(2, Tokens(203, 1), 4);
  foreign.scope.salt = {1, 2};
  EXPECT_EQ(Ask(tiered, foreign), 0u);
  EXPECT_EQ(Ask(tiered, Request(3, Tokens(203, 9), 4)), 0u);
  EXPECT_EQ(tiered.rig().Step().stats.tiers.taken_back_blocks, 0u);
  Settle(tiered);
  EXPECT_GE(Ask(tiered, Request(4, Tokens(203, 1), 4)), 192u) << "from host memory";
  EXPECT_GT(tiered.rig().Step().stats.tiers.host_loaded_tokens, 0u);
}

TEST_P(TakeBack, WhatIsDeletedOnItsWayIsGone) {
  TieredRig tiered(With());
  Ask(tiered, Of(1, "a", Tokens(203, 1)));
  BeginSuspend(tiered, 1, "a");
  tiered.rig().Command({.id = SessionCommandId(2), .verb = SessionVerb::kDelete, .name = {"", "a"}});
  EXPECT_EQ(Ask(tiered, Request(2, Tokens(203, 1), 4)), 0u);
  Settle(tiered);
  EXPECT_EQ(tiered.rig().Step().stats.tiers.taken_back_blocks, 0u);
  EXPECT_EQ(tiered.rig().Step().stats.tiers.host_cached_bytes, 0u);
}

// Sessions that are suspended and gone on with at any moment, in a pool too small for all: every answer is what the
// model alone would give, and no slot is lost.
TEST_P(TakeBack, WheneverARequestComesItsAnswerIsTheSameAndNoSlotIsLost) {
  uint64_t taken_back = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SplitMix64 random(seed);
    TieredRig::Options options = With();
    options.slots = GetParam().model.windows.size() * 60;
    TieredRig tiered(options);
    std::map<uint64_t, GenerateRequest> asked;
    for (uint64_t id = 1; id <= 150; ++id) {
      const uint64_t talk = random.Below(6);
      if (random.Below(3) == 0) {
        BeginSuspend(tiered, id, std::to_string(talk));
      } else {
        asked[id] = Of(id, std::to_string(talk), Tokens(static_cast<uint32_t>(40 + random.Below(250)), talk));
        tiered.rig().Arrive(asked[id]);
      }
      for (uint64_t steps = random.Below(40); steps > 0; --steps) {
        if (random.Below(4) == 0) tiered.rig().Advance(Nanos(random.Below(200'000)));
        tiered.rig().Step();
      }
      if (random.Below(4) == 0) tiered.rig().RunToEnd();
    }
    tiered.rig().RunToEnd();
    Settle(tiered);
    for (const auto& [id, request] : asked) {
      const std::pair key(RequestId(id), 0u);
      ASSERT_EQ(tiered.rig().outputs[key], Expected(tiered.rig().executor(), request, 0)) << seed << ", " << id;
    }
    EXPECT_EQ(tiered.host().Violations(), std::vector<std::string>());
    const EngineStats stats = tiered.rig().Step().stats;
    EXPECT_EQ(stats.in_use_slots(), 0u) << seed;
    taken_back += stats.tiers.taken_back_blocks;
  }
  EXPECT_GT(taken_back, 50u);
}

INSTANTIATE_TEST_SUITE_P(Models, TakeBack,
                         testing::Values(TieredCase{"Full", Device::kSimLink, {}},
                                         TieredCase{"Sliding", Device::kSimLink, SlidingModel()}),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace cachalot::engine
