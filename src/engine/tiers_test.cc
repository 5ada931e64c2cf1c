#include <gtest/gtest.h>

#include "engine/testing/tiered_rig.h"

namespace cachalot::engine {
namespace {

// Computing is slow, so that loading is worth it.
constexpr StepCurve kSlow = {1e-2, 1e-3};
EngineOptions Options() { return {.max_sequences = 8, .step_rows = 64, .prefill_chunk = 64}; }

class Tiers : public testing::TestWithParam<TieredCase> {
 protected:
  TieredRig::Options With() const {
    return {.engine = Options(), .model = GetParam().model, .device = GetParam().device, .curve = kSlow};
  }

  static uint64_t Loaded(TieredRig& tiered) { return tiered.rig().Step().stats.tiers.loaded_tokens; }
};

TEST_P(Tiers, WhatARestartForgetsIsOnDisk) {
  TieredRig tiered(With());
  GenerateRequest request = Request(1, Tokens(200, 1), 40);
  EXPECT_EQ(Ask(tiered, request), 0u);
  tiered.Restart();
  const std::vector<TokenId> answer = Expected(tiered.rig().executor(), request, 0);
  request.prompt.insert(request.prompt.end(), answer.begin(), answer.end());
  request.prompt.push_back(7);
  EXPECT_EQ(Ask(tiered, request), 224u) << "all whole blocks of which the KV had been computed";
  EXPECT_EQ(Loaded(tiered), 224u);
}

TEST_P(Tiers, WhatComesBackReadsItsBytesOnce) {
  if (GetParam().device != Device::kCpu) return;  // the disk is the same
  for (const bool ahead : {false, true}) {
    TieredRig tiered(With());
    Ask(tiered, Request(1, Tokens(1600, 1), 4));
    tiered.rig().WriteAll();
    EXPECT_TRUE(tiered.store().Close().ok());
    const uint64_t written = tiered.files().counts().bytes_written;
    tiered.Crash(Unsynced::kLost);
    const uint64_t before = tiered.files().counts().bytes_read;
    if (ahead) {  // its request comes while it is on its way up
      tiered.rig().Command({.id = SessionCommandId(1), .verb = SessionVerb::kPrefetch, .prompt = Tokens(1600, 1)});
    }
    EXPECT_GE(Ask(tiered, Request(2, Tokens(1600, 1), 4)), 1584u);
    EXPECT_GE(tiered.files().counts().bytes_read - before, tiered.store().stats().loaded_bytes);
    EXPECT_LE(tiered.files().counts().bytes_read - before, written);
  }
}

TEST_P(Tiers, TheLinkToTheDiskTellsWhatItMoved) {
  TieredRig tiered(With());
  Ask(tiered, Request(1, Tokens(200, 1), 4));
  tiered.rig().WriteAll();
  constexpr auto kUp = static_cast<size_t>(Direction::kUp), kDown = static_cast<size_t>(Direction::kDown);
  constexpr auto kDone = static_cast<size_t>(TransferEnd::kDone);
  const TierStats written = tiered.rig().Step().stats.tiers;
  EXPECT_GT(written.stored_bytes, 0u);
  EXPECT_EQ(written.disk_link[kDown].bytes, written.stored_bytes);
  EXPECT_GT(written.disk_link[kDown].jobs[kDone], 0u);
  EXPECT_GT(written.disk_link[kDown].busy, Nanos(0));
  EXPECT_EQ(written.disk_link[kUp].jobs[kDone], 0u);
  tiered.Restart();
  EXPECT_EQ(Ask(tiered, Request(2, Tokens(200, 1), 4)), 192u);
  const TierStats read = tiered.rig().Step().stats.tiers;
  EXPECT_EQ(read.disk_link[kUp].bytes, read.loaded_bytes);
  EXPECT_GT(read.disk_link[kUp].busy, Nanos(0));
  EXPECT_EQ(read.disk_link[kUp].in_flight_bytes, 0u);
  EXPECT_EQ(read.disk_link[kUp].waiting_jobs, 0u);
}

TEST_P(Tiers, WhatThePoolHadNoRoomForComesBack) {
  TieredRig::Options options = With();
  options.slots = 200;
  TieredRig tiered(options);
  for (uint64_t i = 1; i <= 12; ++i) Ask(tiered, Request(i, Tokens(400, i), 8));
  tiered.rig().WriteAll();
  uint64_t cached = 0;
  for (uint64_t i = 1; i <= 12; ++i) cached += Ask(tiered, Request(100 + i, Tokens(400, i), 8));
  EXPECT_GE(cached, 12 * 384u);
  EXPECT_GT(Loaded(tiered), 8 * 384u);
}

TEST_P(Tiers, OtherTenantsFindNothingThere) {
  TieredRig tiered(With());
  GenerateRequest request = Request(1, Tokens(200, 1), 4);
  request.scope.salt = {1, 2};
  Ask(tiered, request);
  tiered.Restart();
  request.scope.salt = {1, 3};
  EXPECT_EQ(Ask(tiered, request), 0u);
  request.id = RequestId(2);
  request.scope.salt = {1, 2};
  EXPECT_EQ(Ask(tiered, request), 192u);
}

TEST_P(Tiers, WhatIsToBeOverwrittenAfterwardsIsNotWritten) {
  TieredRig tiered(With());
  GenerateRequest request = Request(1, Tokens(200, 1), 4);
  request.retention.scrub = true;
  Ask(tiered, request);
  tiered.rig().WriteAll();
  EXPECT_EQ(tiered.store().stats().stored_bytes, 0u);
}

TEST_P(Tiers, WhatIsClearedStaysSoOverRestarts) {
  TieredRig tiered(With());
  const GenerateRequest request = Request(1, Tokens(200, 1), 4);
  Ask(tiered, request);
  StepInput input;
  input.inquiries.push_back({InquiryId(1), InquiryKind::kClear, {}});
  EXPECT_TRUE(tiered.rig().Step(std::move(input)).answers.front().cleared.ok());
  tiered.Crash(Unsynced::kLost);
  EXPECT_EQ(Ask(tiered, request), 0u);
}

// What waits to be written when the order comes is not written after it.
TEST_P(Tiers, NothingThatIsClearedIsWrittenAfterwards) {
  for (int steps = 0; steps < 20; ++steps) {
    TieredRig tiered(With());
    for (uint64_t i = 1; i <= 4; ++i) Ask(tiered, Request(i, Tokens(400, i), 4));
    for (int i = 0; i < steps; ++i) tiered.rig().Step();
    StepInput input;
    input.inquiries.push_back({InquiryId(1), InquiryKind::kClear, {}});
    EXPECT_TRUE(tiered.rig().Step(std::move(input)).answers.front().cleared.ok());
    tiered.rig().WriteAll();
    EXPECT_EQ(tiered.rig().Step().stats.tiers.blocks, 0u) << steps;
  }
}

// As chats do that begin with the same words of a template.
TEST_P(Tiers, APromptOfWhichAFewTokensAreInThePoolComesFromDiskAllTheSame) {
  TieredRig tiered(With());
  const std::vector<TokenId> common = Tokens(21, 1);
  const auto prompt = [&](uint64_t seed) {
    std::vector<TokenId> tokens = common, own = Tokens(300, seed);
    tokens.insert(tokens.end(), own.begin(), own.end());
    return tokens;
  };
  for (uint64_t i = 2; i <= 4; ++i) Ask(tiered, Request(i, prompt(i), 4));
  tiered.Restart();
  for (uint64_t i = 2; i <= 4; ++i) EXPECT_EQ(Ask(tiered, Request(10 + i, prompt(i), 4)), 320u);
}

TEST_P(Tiers, DamageIsAMissAndNeverAnotherAnswer) {
  for (uint64_t bit = 0; bit < 40; ++bit) {
    TieredRig tiered(With());
    const GenerateRequest request = Request(1, Tokens(200, 1), 4);
    Ask(tiered, request);
    tiered.Restart();
    tiered.FlipBits(bit * 977 * 8 + bit % 8);
    const uint32_t cached = Ask(tiered, request);
    EXPECT_EQ(cached, Loaded(tiered));
  }
}

TEST_P(Tiers, AFileThatCannotBeReadIsAMiss) {
  TieredRig tiered(With());
  const GenerateRequest request = Request(1, Tokens(200, 1), 4);
  Ask(tiered, request);
  tiered.Restart();
  tiered.files().Fail({.op = FileOp::kRead, .onwards = true});
  EXPECT_EQ(Ask(tiered, request), 0u);
  EXPECT_GE(tiered.rig().Step().stats.tiers.failed_loads, 1u);
}

TEST_P(Tiers, ACancelWhileItLoadsLeavesNothing) {
  for (int steps = 0; steps < 12; ++steps) {
    TieredRig tiered(With());
    const GenerateRequest request = Request(1, Tokens(300, 1), 4);
    Ask(tiered, request);
    tiered.Restart();
    tiered.rig().Arrive(request);
    for (int i = 0; i < steps; ++i) tiered.rig().Step();
    tiered.rig().Cancel(request.id);
    tiered.rig().RunToEnd();
    tiered.rig().WriteAll();
    const EngineStats stats = tiered.rig().Step().stats;
    EXPECT_EQ(stats.in_use_slots(), 0u);
    EXPECT_EQ(stats.promised_slots, 0u);
    GenerateRequest again = request;
    again.id = RequestId(2);
    Ask(tiered, again);
  }
}

TEST_P(Tiers, ThoseWhoShareAPromptWaitForOneLoad) {
  TieredRig tiered(With());
  const GenerateRequest request = Request(1, Tokens(300, 1), 4);
  Ask(tiered, request);
  tiered.Restart();
  StepInput input;
  for (uint64_t i = 1; i <= 4; ++i) {
    input.arrivals.push_back(request);
    input.arrivals.back().id = RequestId(i);
  }
  tiered.rig().Step(std::move(input));
  tiered.rig().RunToEnd();
  EXPECT_EQ(Loaded(tiered), 288u);
  for (uint64_t i = 1; i <= 4; ++i) {
    EXPECT_EQ(tiered.rig().outputs[std::pair(RequestId(i), 0u)], Expected(tiered.rig().executor(), request, 0));
  }
}

TEST_P(Tiers, AFullDiskStopsWritingAndNothingElse) {
  TieredRig::Options options = With();
  options.slots = 100;
  TieredRig tiered(options);
  tiered.files().Fail({.op = FileOp::kWrite, .onwards = true, .code = Code::kOverloaded});
  for (uint64_t i = 1; i <= 10; ++i) Ask(tiered, Request(i, Tokens(300, i % 4), 8));
  tiered.rig().WriteAll();
  EXPECT_FALSE(tiered.store().stats().health.ok());
  EXPECT_TRUE(tiered.rig().Step().stats.tiers.degraded);

  tiered.files().Heal();
  for (uint64_t i = 11; i <= 14; ++i) {
    tiered.rig().Advance(std::chrono::seconds(11));
    Ask(tiered, Request(i, Tokens(300, i), 8));
    tiered.rig().WriteAll();
  }
  EXPECT_TRUE(tiered.store().stats().health.ok());
  EXPECT_FALSE(tiered.rig().Step().stats.tiers.degraded);
  EXPECT_GT(tiered.store().stats().disk.live_blocks, 0u);
}

// Sessions beyond the pool, restarts, crashes, failing transfers and files that rot, all at once.
TEST_P(Tiers, WhateverHappensAnswersAreThoseOfTheRequestAlone) {
  uint64_t loaded = 0, failed = 0, compared = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SplitMix64 random(seed);
    TieredRig::Options options = With();
    options.slots = 160;
    options.disk_bytes = 4 << 20;
    options.engine.admission = seed % 2 == 0 ? "expected" : "guaranteed";
    options.engine.verify_hits = 0.05;
    options.faults = {.seed = seed, .fail_share = 0.2, .hold_share = 0.1};
    if (seed % 3 != 0) options.curve = StepCurve{8e-5, 1e-6};  // loads are not awaited, but met
    TieredRig tiered(options);
    PromptMaker prompts(seed, 250);
    std::map<RequestId, GenerateRequest> asked;
    const auto compare = [&] {
      for (const auto& [id, request] : asked) {
        const auto finish = tiered.rig().finishes.find(std::pair(id, 0u));
        if (finish == tiered.rig().finishes.end() || finish->second.reason == FinishReason::kCancelled) continue;
        EXPECT_EQ(finish->second.reason, FinishReason::kLength) << finish->second.error.message();
        EXPECT_EQ(tiered.rig().outputs[std::pair(id, 0u)], Expected(tiered.rig().executor(), request, 0));
        ++compared;
      }
      asked.clear();
    };
    for (uint64_t step = 0, id = 0; step < 1200; ++step) {
      StepInput input;
      if (random.Below(6) == 0) {
        GenerateRequest request = Request(++id, prompts.Next(), static_cast<uint32_t>(1 + random.Below(40)));
        request.scope.salt.low = random.Below(2);
        asked.emplace(request.id, request);
        input.arrivals.push_back(std::move(request));
      }
      if (id > 0 && random.Below(30) == 0) input.cancels.push_back(RequestId(1 + random.Below(id)));
      const StepOutput out = tiered.rig().Step(std::move(input));
      for (const Rejection& rejection : out.rejections) asked.erase(rejection.id);
      if (random.Below(150) != 0) continue;
      const EngineStats stats = out.stats;
      loaded += stats.tiers.loaded_tokens;
      failed += stats.tiers.failed_loads;
      if (random.Below(2) == 0) tiered.rig().RunToEnd();
      compare();
      if (random.Below(3) == 0) {
        tiered.Restart();
      } else {
        tiered.Crash(random.Below(2) == 0 ? Unsynced::kMixed : Unsynced::kKept, random());
      }
      if (random.Below(4) == 0) tiered.FlipBits(random());
    }
    tiered.rig().RunToEnd();
    compare();
  }
  EXPECT_GT(loaded, 100u);
  EXPECT_GT(failed, 0u);
  EXPECT_GT(compared, 200u);
}

INSTANTIATE_TEST_SUITE_P(All, Tiers,
                         testing::Values(TieredCase{"Full", Device::kCpu, {}},
                                         TieredCase{"Sliding", Device::kCpu, SlidingModel()},
                                         TieredCase{"FullOverALink", Device::kSimLink, {}},
                                         TieredCase{"SlidingOverALink", Device::kSimLink, SlidingModel()}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cachalot::engine
