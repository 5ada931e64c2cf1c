#include <gtest/gtest.h>

#include <numeric>

#include "base/random.h"
#include "engine/engine.h"
#include "engine/testing/engine_rig.h"

namespace cachalot::engine {
namespace {

uint64_t Of(const EngineStats& stats, TokenClass c) { return stats.hits[c]; }

uint64_t Sum(const EngineStats& stats) {
  return std::accumulate(stats.hits.tokens.begin(), stats.hits.tokens.end(), uint64_t{0});
}

EngineStats Serve(Rig& rig, GenerateRequest request) {
  rig.Arrive(std::move(request));
  rig.RunToEnd();
  return rig.Step().stats;
}

std::vector<TokenId> Followed(std::vector<TokenId> tokens, const std::vector<TokenId>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

TEST(Accounting, ANewPromptIsNewAndItsLastTokenIsAskedFor) {
  Rig rig;
  const EngineStats stats = Serve(rig, Request(1, Tokens(100, 1), 5));
  EXPECT_EQ(Of(stats, TokenClass::kNew), 99u);
  EXPECT_EQ(Of(stats, TokenClass::kAsked), 1u);
}

TEST(Accounting, ANextTurnFindsItsOwnAndAnotherRequestWhatIsShared) {
  Rig rig;
  const std::vector<TokenId> prompt = Tokens(100, 1);
  Serve(rig, Request(1, prompt, 30));
  const std::vector<TokenId> all = Followed(prompt, rig.outputs[{RequestId(1), 0}]);
  EngineStats stats = Serve(rig, Request(2, Followed(all, Tokens(20, 2)), 5));
  EXPECT_EQ(Of(stats, TokenClass::kOwn), 129u);
  EXPECT_EQ(Of(stats, TokenClass::kShared), 0u);
  EXPECT_EQ(Of(stats, TokenClass::kRendering), 0u);
  stats = Serve(rig, Request(3, prompt, 5));
  EXPECT_EQ(Of(stats, TokenClass::kShared), 99u);
}

TEST(Accounting, AnAnswerInOtherTokensIsLostToRendering) {
  Rig rig;
  const std::vector<TokenId> prompt = Tokens(96, 1);
  Serve(rig, Request(1, prompt, 33));
  std::vector<TokenId> answer = rig.outputs[{RequestId(1), 0}];
  answer[20] = (answer[20] + 1) % 1000;
  const EngineStats stats = Serve(rig, Request(2, Followed(Followed(prompt, answer), Tokens(20, 2)), 5));
  EXPECT_EQ(Of(stats, TokenClass::kOwn), 116u);
  EXPECT_EQ(Of(stats, TokenClass::kRendering), 12u);  // up to the last token whose KV the answer left
}

TEST(Accounting, SaysWhatWasLostWhy) {
  Rig rig({}, {}, 20);
  const std::vector<TokenId> prompt = Tokens(160, 1);
  Serve(rig, Request(1, prompt, 5));
  Serve(rig, Request(2, Tokens(250, 2), 5));
  EngineStats stats = Serve(rig, Request(3, prompt, 5));
  EXPECT_GT(Of(stats, TokenClass::kCapacity), 0u);
  EXPECT_EQ(Of(stats, TokenClass::kCapacity) + Of(stats, TokenClass::kShared), 159u);
  EXPECT_EQ(stats.hits.shadow_tokens[0], 0u);
  EXPECT_LT(stats.hits.shadow_tokens[1], 159u);
  EXPECT_EQ(stats.hits.shadow_tokens[2], 159u);
  EXPECT_EQ(stats.hits.shadow_tokens[4], 159u);
  EXPECT_GT(std::accumulate(stats.residency.idle_times.counts.begin(), stats.residency.idle_times.counts.end(), 0ull),
            0u);

  StepInput clear;
  clear.inquiries.push_back({InquiryId(1), InquiryKind::kClear, {}});
  rig.Step(std::move(clear));
  stats = Serve(rig, Request(4, prompt, 5));
  EXPECT_EQ(Of(stats, TokenClass::kCleared), 159u);
}

TEST(Accounting, WhatOnlyOthersHaveIsCountedApart) {
  Rig rig;
  const std::vector<TokenId> prompt = Tokens(100, 1);
  GenerateRequest a = Request(1, prompt, 1), b = Request(2, prompt, 1);
  a.scope.salt.low = 1;
  b.scope.salt.low = 2;
  Serve(rig, a);
  const EngineStats stats = Serve(rig, b);
  EXPECT_EQ(Of(stats, TokenClass::kSalt), 96u);
  EXPECT_EQ(Of(stats, TokenClass::kShared) + Of(stats, TokenClass::kOwn), 0u);
}

TEST(Accounting, BeforeAResumePointIsLostToGranularity) {
  Rig rig({}, {.windows = {0, 24}}, 30);
  Serve(rig, Request(1, Tokens(200, 1), 1));
  Serve(rig, Request(3, Tokens(90, 3), 1));  // takes the room of blocks that are in no resume point's window
  std::vector<TokenId> other = Tokens(200, 1);
  other.resize(100);
  const EngineStats stats = Serve(rig, Request(2, Followed(other, Tokens(20, 4)), 1));
  EXPECT_GT(Of(stats, TokenClass::kGranularity), 0u);
  EXPECT_EQ(Of(stats, TokenClass::kShared) + Of(stats, TokenClass::kGranularity), 96u);
}

TEST(Accounting, WithoutACacheItSaysWhatACacheWouldGive) {
  Rig rig({.prefix_cache = false});
  const std::vector<TokenId> prompt = Tokens(100, 1);
  Serve(rig, Request(1, prompt, 20));
  const std::vector<TokenId> all = Followed(prompt, rig.outputs[{RequestId(1), 0}]);
  const EngineStats stats = Serve(rig, Request(2, all, 5));
  EXPECT_EQ(stats.prompt_tokens_cached, 0u);
  EXPECT_EQ(Of(stats, TokenClass::kOff), 112u);
  EXPECT_EQ(stats.hits.shadow_tokens[1], 112u);
}

TEST(Accounting, WithoutAShadowIndexNothingIsCounted) {
  Rig rig({.shadow_index = false});
  Serve(rig, Request(1, Tokens(100, 1), 5));
  const EngineStats stats = Serve(rig, Request(2, Tokens(100, 1), 5));
  EXPECT_EQ(Sum(stats), 0u);
  EXPECT_EQ(stats.prompt_tokens_cached, 99u);
}

TEST(Accounting, TheLedgerIsExactWhenNothingRunsAndASecondOldAtMost) {
  Rig rig;
  const EngineStats stats = Serve(rig, Request(1, Tokens(100, 1), 5));
  const uint64_t token = rig.executor().layout().groups[0].used_bytes / 16;
  EXPECT_EQ(stats.ledger.idle_bytes, 104 * token * rig.executor().layout().groups.size());
  EXPECT_EQ(stats.ledger.live_bytes, 0u);
  EXPECT_EQ(stats.ledger.Sum(), stats.ledger.total_bytes);
}

// Every prompt of all that is admitted is accounted for to the token, through preemptions and evictions.
TEST(Accounting, TheClassesAddUpToAllPrompts) {
  uint64_t preemptions = 0;
  for (const uint64_t seed : {1u, 2u, 3u, 4u}) {
    SplitMix64 random(seed);
    exec::FakeOptions model;
    if (seed % 2 == 0) model.windows = {0, 24, 24, 40};
    Rig rig({.max_sequences = 24, .admission = seed < 3 ? "expected" : "guaranteed"}, model, seed == 1 ? 60 : 120);
    PromptMaker prompts(seed, 120);
    uint64_t asked = 0, id = 0;
    EngineStats stats;
    for (int step = 0; step < 600; ++step) {
      StepInput input;
      while (random.Below(4) == 0) {
        // Answers are short until it is expected, then long.
        const uint64_t longest = step < 300 ? 4 : seed == 1 ? 160 : 60;
        GenerateRequest request = Request(++id, prompts.Next(), static_cast<uint32_t>(1 + random.Below(longest)));
        request.n = static_cast<uint32_t>(1 + random.Below(3));
        request.scope.salt.low = random.Below(2);
        if (random.Below(5) == 0) request.prompt_logprobs = 1;
        asked += request.prompt.size();
        input.arrivals.push_back(std::move(request));
      }
      stats = rig.Step(std::move(input)).stats;
      ASSERT_EQ(Of(stats, TokenClass::kShared) + Of(stats, TokenClass::kOwn), stats.prompt_tokens_cached);
    }
    rig.RunToEnd();
    stats = rig.Step().stats;
    EXPECT_EQ(stats.requests_rejected, 0u);
    EXPECT_EQ(Sum(stats), asked);
    EXPECT_EQ(Of(stats, TokenClass::kShared) + Of(stats, TokenClass::kOwn), stats.prompt_tokens_cached);
    preemptions += stats.preemptions;
    for (const TokenClass c : {TokenClass::kShared, TokenClass::kNew, TokenClass::kCapacity, TokenClass::kSalt}) {
      EXPECT_GT(Of(stats, c), 0u) << kTokenClassNames[static_cast<size_t>(c)];
    }
    for (size_t cache = 1; cache < kShadowNames.size(); ++cache) {
      EXPECT_GE(stats.hits.shadow_tokens[cache], stats.hits.shadow_tokens[cache - 1]);
    }
  }
  EXPECT_GT(preemptions, 0u);
}

}  // namespace
}  // namespace cachalot::engine
