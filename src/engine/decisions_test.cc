// What is told of decisions between loading and computing: inputs, estimates, and what came of them.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "engine/testing/told_decisions.h"

namespace cachalot::engine {
namespace {

Json::Array DecisionsOf(TieredRig& tiered) { return *DecisionsTold(tiered).decisions.AsArray(); }

GenerateRequest Of(const char* session, uint64_t id, std::vector<TokenId> prompt) {
  GenerateRequest request = Request(id, std::move(prompt), 1);
  request.session = SessionName{"", session};
  return request;
}

void Suspend(TieredRig& tiered, const char* session, uint64_t id) {
  tiered.rig().Command({.id = SessionCommandId(id), .verb = SessionVerb::kSuspend, .name = {"", session}});
  for (int i = 0; i < 20'000 && !tiered.rig().session_answers.contains(SessionCommandId(id)); ++i) tiered.rig().Step();
  ASSERT_TRUE(tiered.rig().session_answers.at(SessionCommandId(id)).status.ok());
}

TEST(Decisions, OneTellsWhatWasKnownThoughtAndThenTrue) {
  TieredRig tiered(With(kSlow));
  Ask(tiered, Request(1, Tokens(200, 1), 4));
  tiered.Restart();
  EXPECT_TRUE(DecisionsOf(tiered).empty()) << "of this process";
  GenerateRequest request = Request(2, Tokens(200, 1), 4);
  request.session = SessionName{"alice", "talk"};
  EXPECT_EQ(Ask(tiered, request), 192u);
  const Json::Array all = DecisionsOf(tiered);
  ASSERT_EQ(all.size(), 1u);
  const Json& one = all[0];
  EXPECT_EQ(Int(one, {"request"}), 2);
  EXPECT_EQ(Text(one, {"owner"}) + "/" + Text(one, {"session"}), "alice/talk");
  EXPECT_GT(Number(one, {"seconds_ago"}), 0);
  EXPECT_EQ(Text(one, {"way"}), "load");

  EXPECT_EQ(Int(one, {"inputs", "prompt_tokens"}), 200);
  EXPECT_EQ(Int(one, {"inputs", "hot_tokens"}), 0);
  const Json& span = In(one, {"inputs", "spans"}).AsArray()->at(0);
  EXPECT_EQ(Text(span, {"tier"}), "disk");
  EXPECT_EQ(Int(span, {"tokens"}), 192);
  EXPECT_EQ(Int(span, {"full_bytes"}), Int(one, {"estimates", "load", "load_bytes"}));
  EXPECT_GT(Number(one, {"inputs", "links", "disk", "bytes_per_second"}), 0);
  EXPECT_EQ(Int(one, {"inputs", "links", "disk", "queued_bytes"}), 0);

  EXPECT_EQ(Int(one, {"estimates", "load", "computed_tokens"}), 8);
  EXPECT_EQ(Int(one, {"estimates", "recompute", "computed_tokens"}), 200);
  EXPECT_LT(Number(one, {"estimates", "load", "cost_seconds"}),
            Number(one, {"estimates", "recompute", "cost_seconds"}));

  EXPECT_EQ(Int(one, {"outcome", "loaded_tokens"}), 192);
  EXPECT_EQ(Int(one, {"outcome", "computed_tokens"}), 8);
  EXPECT_EQ(Int(one, {"outcome", "failed_blocks"}), 0);
}

TEST(Decisions, TheTimeToTheFirstTokenIsThatUntilItsStepEnded) {
  TieredRig tiered(With(kSlow));
  Ask(tiered, Request(1, Tokens(200, 1), 1));
  tiered.Restart();
  tiered.rig().Arrive(Request(2, Tokens(200, 1), 4));
  const Nanos decided = tiered.clock().Now();
  while (tiered.rig().outputs[{RequestId(2), 0u}].empty()) {
    EXPECT_EQ(In(DecisionsOf(tiered).at(0), {"outcome"}).AsObject(), nullptr) << "it is not known yet";
  }
  const Nanos begun = tiered.clock().Now();
  StepInput input;
  input.last_duration = std::chrono::milliseconds(3);
  tiered.rig().Step(std::move(input));
  const double expected = ToSeconds(begun - decided + std::chrono::milliseconds(3));
  EXPECT_NEAR(Number(DecisionsOf(tiered).at(0), {"outcome", "ttft_seconds"}), expected, 1e-9);
  tiered.rig().RunToEnd();
}

TEST(Decisions, WhatIsHotIsNeitherLoadedNorComputed) {
  TieredRig tiered(With(kSlow));
  Ask(tiered, Request(1, Tokens(200, 1), 1));
  tiered.Restart();
  std::vector<TokenId> first = Tokens(200, 1);
  first.resize(97);
  Ask(tiered, Request(2, first, 1));
  EXPECT_EQ(Ask(tiered, Request(3, Tokens(200, 1), 1)), 192u);
  const Json::Array all = DecisionsOf(tiered);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(Int(all[1], {"request"}), 3) << "the newest last";
  EXPECT_EQ(Int(all[1], {"inputs", "hot_tokens"}), 96);
  EXPECT_EQ(Int(all[1], {"outcome", "loaded_tokens"}), 96);
  EXPECT_EQ(Int(all[1], {"outcome", "computed_tokens"}), 8);
}

TEST(Decisions, WhatIsFoundOfABlockIsNotComputedEither) {
  TieredRig tiered(With(kQuick));
  const GenerateRequest whole = Of("a", 1, Tokens(200, 1));
  Ask(tiered, whole);
  Suspend(tiered, "a", 1);  // what is quickly computed is not written otherwise
  tiered.Restart();
  std::vector<TokenId> first = whole.prompt;
  first.resize(101);
  Ask(tiered, Request(2, first, 1));
  ASSERT_EQ(Ask(tiered, Request(3, whole.prompt, 1)), 101u);
  const Json::Array all = DecisionsOf(tiered);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(Text(all[1], {"way"}), "recompute");
  EXPECT_EQ(Int(all[1], {"inputs", "hot_tokens"}), 96);
  EXPECT_EQ(Int(all[1], {"outcome", "loaded_tokens"}), 0);
  EXPECT_EQ(Int(all[1], {"outcome", "computed_tokens"}), 99);
}

TEST(Decisions, WhatCouldNotBeLoadedWasComputed) {
  uint64_t failed = 0;
  for (uint64_t bit = 0; bit < 20; ++bit) {
    TieredRig tiered(With(kSlow));
    Ask(tiered, Request(1, Tokens(200, 1), 1));
    tiered.Restart();
    tiered.FlipBits(bit * 9973 * 8);
    const uint32_t cached = Ask(tiered, Request(2, Tokens(200, 1), 1));
    const Json::Array all = DecisionsOf(tiered);
    for (const Json& one : all) {
      EXPECT_EQ(Int(one, {"outcome", "loaded_tokens"}), cached);
      EXPECT_EQ(Int(one, {"outcome", "computed_tokens"}), 200 - cached);
      failed += Int(one, {"outcome", "failed_blocks"}) > 0;
    }
  }
  EXPECT_GT(failed, 0u);
}

// It loads its first 64 tokens, computes on, and gives way to an older one before it has its first token; what it had
// is there when it comes back.
TEST(Decisions, WhoGivesWayBeforeItsFirstTokenComputedWhatItComputedBeforeAndAfter) {
  TieredRig::Options options = With(kSlow);
  options.engine = {.max_sequences = 8, .step_rows = 17, .prefill_chunk = 16, .admission = "optimistic"};
  options.engine.admission_reserve = 0;
  options.slots = 21;
  TieredRig tiered(options);
  std::vector<TokenId> prompt = Tokens(65, 1);
  Ask(tiered, Request(1, prompt, 1));
  tiered.Restart();
  tiered.rig().Arrive(Request(2, Tokens(16, 2), 100));
  while (tiered.rig().outputs[{RequestId(2), 0u}].size() < 88) tiered.rig().Step();
  prompt.resize(64);
  for (const TokenId token : Tokens(160, 3)) prompt.push_back(token);
  tiered.rig().Arrive(Request(3, prompt, 4));
  tiered.rig().Advance(std::chrono::milliseconds(1));  // it comes up
  tiered.rig().RunToEnd();
  ASSERT_EQ(tiered.rig().Step().stats.preemptions, 1u);
  const Json::Array all = DecisionsOf(tiered);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(Text(all[0], {"outcome", "end"}), "first token");
  EXPECT_EQ(Int(all[0], {"outcome", "loaded_tokens"}), 64);
  EXPECT_EQ(Int(all[0], {"outcome", "computed_tokens"}), 160);
}

TEST(Decisions, OfARequestThatEndsBeforeItsFirstTokenTheOutcomeSaysSo) {
  TieredRig tiered(With(kSlow));
  Ask(tiered, Request(1, Tokens(200, 1), 1));
  tiered.Restart();
  tiered.rig().Arrive(Request(2, Tokens(200, 1), 4));
  tiered.rig().Cancel(RequestId(2));
  const Json::Array all = DecisionsOf(tiered);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(Text(all[0], {"outcome", "end"}), "request ended");
  EXPECT_TRUE(In(all[0], {"outcome", "ttft_seconds"}).is_null());
  EXPECT_EQ(Int(all[0], {"outcome", "loaded_tokens"}), 0);
}

// Requests that give way, are cancelled, and load in two parts, over a disk of which reads fail.
TEST(Decisions, EachHasOneOutcomeAndOnlyTheLastOfARequestIsNotFollowedByAnother) {
  std::map<std::string, uint64_t> ends;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    TieredRig::Options options = With({1e-4, 1e-4});
    options.engine = {.max_sequences = 8, .step_rows = 16, .prefill_chunk = 8, .admission = "optimistic"};
    options.engine.admission_reserve = 0;
    options.slots = 40;
    options.host_bytes = 1 << 17;
    options.faults = {.seed = seed, .bytes_per_second = 1e8, .fail_share = 0.05, .hold_share = 0.2};
    TieredRig tiered(options);
    SplitMix64 random(seed);
    for (uint64_t id = 1; id <= 80; ++id) {
      const auto tokens = static_cast<uint32_t>(60 + random.Below(300));
      tiered.rig().Arrive(Request(id, Tokens(tokens, random.Below(8)), static_cast<uint32_t>(1 + random.Below(150))));
      for (uint64_t steps = random.Below(4); steps > 0; --steps) tiered.rig().Step();
      if (random.Below(4) == 0) tiered.rig().Cancel(RequestId(id));
      for (uint64_t steps = random.Below(60); steps > 0; --steps) tiered.rig().Step();
    }
    tiered.rig().RunToEnd();
    std::map<int64_t, std::string> last;  // by request
    for (const Json& one : DecisionsOf(tiered)) {
      ASSERT_FALSE(In(one, {"outcome"}).is_null()) << "seed " << seed;
      const std::string end = Text(one, {"outcome", "end"});
      std::string& before = last[Int(one, {"request"})];
      EXPECT_TRUE(before.empty() || before == "decided again" || before == "first token") << before;
      before = end;
      ++ends[end];
      EXPECT_EQ(In(one, {"outcome", "ttft_seconds"}).is_null(), end != "first token");
      if (end != "first token") continue;
      EXPECT_GE(Int(one, {"inputs", "hot_tokens"}) + Int(one, {"outcome", "loaded_tokens"}) + 15 +
                    Int(one, {"outcome", "computed_tokens"}),
                Int(one, {"inputs", "prompt_tokens"}));
    }
    for (const auto& [request, end] : last) EXPECT_NE(end, "decided again") << request;
  }
  for (const char* end : {"first token", "decided again", "request ended"}) EXPECT_GT(ends[end], 5u) << end;
}

TEST(Decisions, TheLastOnesAreTold) {
  constexpr uint64_t kRequests = 1100, kTold = 1024;
  TieredRig::Options options = With(kSlow);
  options.slots = 16;
  TieredRig tiered(options);
  for (uint64_t i = 0; i <= kRequests; ++i) {  // nothing is decided about the first
    Ask(tiered, Of("a", i, Tokens(40, 1)));
    Suspend(tiered, "a", i);
  }
  const Json::Array all = DecisionsOf(tiered);
  ASSERT_EQ(all.size(), kTold);
  for (uint64_t i = 0; i < kTold; ++i) {
    ASSERT_EQ(Int(all[i], {"request"}), static_cast<int64_t>(kRequests - kTold + 1 + i));
    ASSERT_EQ(Int(all[i], {"outcome", "loaded_tokens"}), 32);
    ASSERT_EQ(Int(all[i], {"outcome", "computed_tokens"}), 8);
  }
}

}  // namespace
}  // namespace cachalot::engine
