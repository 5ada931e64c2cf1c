// What the engine computes, and what it finds.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "engine/testing/engine_rig.h"

namespace cachalot::engine {
namespace {

std::vector<TokenId> Joined(std::vector<TokenId> a, const std::vector<TokenId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(PrefixCache, ASecondRequestComputesOnlyTheLastToken) {
  for (const uint32_t tokens : {1u, 15u, 16u, 17u, 31u, 32u, 33u, 100u}) {
    Rig rig;
    const std::vector<TokenId> prompt = Tokens(tokens, 1);
    rig.Arrive(Request(1, prompt, 5));
    rig.RunToEnd();
    const uint64_t before = rig.Step().stats.prompt_tokens_computed;
    rig.Arrive(Request(2, prompt, 5));
    rig.RunToEnd();
    EXPECT_EQ(rig.Step().stats.prompt_tokens_computed - before, 1u) << tokens;
    EXPECT_EQ(rig.finishes.at({RequestId(2), 0}).cached_tokens, tokens - 1);
    EXPECT_EQ((rig.outputs[{RequestId(1), 0}]), (rig.outputs[{RequestId(2), 0}]));
  }
}

TEST(PrefixCache, AConversationComputesOnlyWhatIsNew) {
  Rig rig;
  std::vector<TokenId> history = Tokens(50, 1);
  for (uint64_t turn = 1; turn <= 5; ++turn) {
    const uint64_t before = rig.Step().stats.prompt_tokens_computed;
    rig.Arrive(Request(turn, history, 21));
    rig.RunToEnd();
    const std::vector<TokenId> answer = rig.outputs[{RequestId(turn), 0}];
    EXPECT_EQ(answer, Expected(rig.executor(), Request(turn, history, 21), 0));
    // The last token of the answer before was sampled, and never ran.
    const uint64_t computed = rig.Step().stats.prompt_tokens_computed - before;
    EXPECT_EQ(computed, turn == 1 ? 50u : 1u + 13u);
    history = Joined(Joined(history, answer), Tokens(13, 100 + turn));
  }
}

TEST(PrefixCache, EqualPromptsInFlightAreComputedOnce) {
  Rig rig({.prefill_chunk = 10});
  StepInput input;
  for (uint64_t id = 1; id <= 8; ++id) input.arrivals.push_back(Request(id, Tokens(75, 1), 6));
  rig.Step(std::move(input));
  rig.RunToEnd();
  EXPECT_EQ(rig.Step().stats.prompt_tokens_computed, 75u + 7);
  for (uint64_t id = 2; id <= 8; ++id) {
    EXPECT_EQ((rig.outputs[{RequestId(id), 0}]), (rig.outputs[{RequestId(1), 0}]));
    EXPECT_EQ(rig.finishes.at({RequestId(id), 0}).cached_tokens, 74u);
  }
}

TEST(PrefixCache, WhenTheLeaderIsCancelledAnotherGoesOnFromThere) {
  Rig rig({.prefill_chunk = 10});
  StepInput input;
  for (uint64_t id = 1; id <= 3; ++id) input.arrivals.push_back(Request(id, Tokens(75, 1), 6));
  rig.Step(std::move(input));
  rig.Step();
  rig.Step();
  rig.Cancel(RequestId(1));
  rig.RunToEnd();
  EXPECT_EQ(rig.Step().stats.prompt_tokens_computed, 75u + 1);
  for (uint64_t id = 2; id <= 3; ++id) {
    EXPECT_EQ((rig.outputs[{RequestId(id), 0}]), Expected(rig.executor(), Request(id, Tokens(75, 1), 6), 0));
  }
}

// SGLang, Theorem 3.1: with room enough, what is computed are the edges of the radix tree of all prompts, and one token
// for each prompt that was there to its end.
void ExpectEachEdgeOnce(uint64_t seed, uint64_t requests, uint32_t longest) {
  Rig rig({.max_queue = 2000, .max_sequences = 20, .prefill_chunk = 33}, {.vocabulary = 4000}, 5000);
  PromptMaker prompts(seed, longest);
  std::vector<std::vector<TokenId>> all;
  uint64_t repeated = 0;
  StepInput input;
  for (uint64_t id = 1; id <= requests; ++id) {
    if (id % 4 == 0) {
      all.push_back(all[id / 2]);
      ++repeated;
    } else {
      all.push_back(Joined(prompts.Next(), {static_cast<TokenId>(PromptMaker::kTokens + id)}));  // no other's prefix
    }
    input.arrivals.push_back(Request(id, all.back(), 1));
  }
  rig.Step(std::move(input));
  rig.RunToEnd();
  std::set<std::vector<TokenId>> prefixes;
  for (const std::vector<TokenId>& prompt : all) {
    for (auto end = prompt.begin(); end != prompt.end(); ++end) prefixes.emplace(prompt.begin(), end + 1);
  }
  EXPECT_EQ(rig.Step().stats.prompt_tokens_computed, prefixes.size() + repeated) << seed;
}

TEST(PrefixCache, AnOfflineBatchComputesEachEdgeOnce) {
  for (uint64_t seed = 1; seed <= 30; ++seed) ExpectEachEdgeOnce(seed, 60, 150);
}

TEST(PrefixCache, SoDoesABatchOfOverAThousand) { ExpectEachEdgeOnce(31, 1200, 50); }

TEST(PrefixCache, WhoeverHasMostResidentIsNextHoweverManyWait) {
  Rig rig({.max_queue = 2000, .max_sequences = 1}, {}, 3000);
  rig.Arrive(Request(1, Tokens(200, 1), 2));
  rig.RunToEnd();
  StepInput input;
  for (uint64_t id = 2; id <= 600; ++id) input.arrivals.push_back(Request(id, Tokens(30, id), 2));
  input.arrivals.push_back(Request(700, Tokens(200, 1), 2));
  rig.Step(std::move(input));
  while (rig.finishes.size() < 3) rig.Step();
  EXPECT_TRUE(rig.finishes.contains({RequestId(700), 0}));
}

TEST(PrefixCache, OtherSaltsFindNothingBeyondThePublicPart) {
  Rig rig;
  GenerateRequest mine = Request(1, Tokens(100, 1), 5);
  mine.scope = {.salt = {1, 2}, .public_tokens = 40};
  rig.Arrive(mine);
  rig.RunToEnd();
  GenerateRequest theirs = Request(2, Tokens(100, 1), 5);
  theirs.scope = {.salt = {1, 3}, .public_tokens = 40};
  rig.Arrive(theirs);
  rig.RunToEnd();
  EXPECT_EQ(rig.finishes.at({RequestId(2), 0}).cached_tokens, 32u);  // whole public blocks
  mine.id = RequestId(3);
  rig.Arrive(mine);
  rig.RunToEnd();
  EXPECT_EQ(rig.finishes.at({RequestId(3), 0}).cached_tokens, 99u);
}

TEST(PrefixCache, ASystemPromptHitsOnASlidingModel) {
  exec::FakeOptions model;
  model.windows = {0, 24, 24, 24, 24, 24};
  Rig rig({}, model, 1000);
  const std::vector<TokenId> system = Tokens(200, 1);
  uint64_t computed = 0;
  for (uint64_t id = 1; id <= 4; ++id) {
    const GenerateRequest request = Request(id, Joined(system, Tokens(30, 10 + id)), 8);
    rig.Arrive(request);
    rig.RunToEnd();
    EXPECT_EQ((rig.outputs[{RequestId(id), 0}]), Expected(rig.executor(), request, 0));
    const uint64_t total = rig.Step().stats.prompt_tokens_computed;
    // The second visit finds the branch and marks it; from then on it is there.
    if (id >= 3) {
      EXPECT_LE(total - computed, 30u + 8u) << id;
    }
    computed = total;
  }
}

TEST(PrefixCache, NothingIsFoundWhenItIsOff) {
  Rig rig({.prefix_cache = false});
  rig.Arrive(Request(1, Tokens(100, 1), 5));
  rig.RunToEnd();
  rig.Arrive(Request(2, Tokens(100, 1), 5));
  rig.RunToEnd();
  EXPECT_EQ(rig.finishes.at({RequestId(2), 0}).cached_tokens, 0u);
  EXPECT_EQ(rig.Step().stats.free_slots, 256u);
}

TEST(PrefixCache, AScoredPromptIsComputedToItsLastRow) {
  Rig rig;
  rig.Arrive(Request(1, Tokens(40, 1), 5));
  rig.RunToEnd();
  GenerateRequest scored = Request(2, Tokens(40, 1), 0);
  scored.prompt_logprobs = 1;
  const StepOutput out = rig.Arrive(scored);
  ASSERT_EQ(out.prompts.size(), 1u);
  EXPECT_EQ(out.prompts.front().tokens.size(), 39u);
  EXPECT_EQ(rig.finishes.at({RequestId(2), 0}).cached_tokens, 0u);
}

}  // namespace
}  // namespace cachalot::engine
