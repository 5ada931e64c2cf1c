#include "load/workload.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "load/conversation.h"

namespace cachalot::load {
namespace {

int64_t Words(const std::string& text) { return std::ranges::count(text, ' '); }

TEST(PromptText, EqualKeysGiveEqualTextAndOthersPartAtOnce) {
  std::set<std::string> beginnings;
  for (uint64_t index = 0; index < 1000; ++index) {
    std::string longer, shorter;
    AppendWords({.seed = 1, .kind = TextKind::kTraceBlock, .index = index, .part = 0}, 50, &longer);
    AppendWords({.seed = 1, .kind = TextKind::kTraceBlock, .index = index, .part = 0}, 8, &shorter);
    EXPECT_TRUE(longer.starts_with(shorter));
    EXPECT_EQ(Words(longer), 50);
    beginnings.insert(shorter);
  }
  EXPECT_EQ(beginnings.size(), 1000u);
}

TEST(PromptText, EveryPartOfAKeyCounts) {
  const TextKey key{.seed = 1, .kind = TextKind::kTurn, .index = 1, .part = 1};
  TextKey seed = key, kind = key, index = key, part = key;
  seed.seed = 2;
  kind.kind = TextKind::kPrefix;
  index.index = uint64_t{1} << 40;
  part.part = 2;
  EXPECT_EQ((std::set<uint64_t>{BitsOf(key), BitsOf(seed), BitsOf(kind), BitsOf(index), BitsOf(part)}.size()), 5u);
}

TEST(PromptText, TheFitIsTheLineThroughTwoProbes) {
  const TokenFit fit = FitTokens({100, 140}, {300, 380});
  EXPECT_TRUE(fit.measured);
  EXPECT_DOUBLE_EQ(fit.tokens_per_word, 1.2);
  EXPECT_DOUBLE_EQ(fit.extra_tokens, 20);
  EXPECT_EQ(WordsFor(120, fit), 100u);
  EXPECT_EQ(WordsFor(-3, fit), 1u);
}

TEST(PromptText, ProbesWithoutSenseGiveTheFallback) {
  for (const auto& [small, large] : {std::pair<uint64_t, uint64_t>{0, 0}, {9, 9}, {9, 5}}) {
    const TokenFit fit = FitTokens({32, small}, {160, large});
    EXPECT_FALSE(fit.measured);
    EXPECT_EQ(fit.tokens_per_word, 1);
  }
}

TEST(SyntheticWorkload, PromptsAreUniqueBehindTheSharedPrefixes) {
  const SyntheticOptions options{.seed = 3, .prompt_tokens = 40, .prefixes = 4, .prefix_tokens = 100};
  const SyntheticWorkload workload(options, {.tokens_per_word = 2, .extra_tokens = 10});
  std::set<std::string> prefixes, prompts;
  for (uint64_t i = 0; i < 200; ++i) {
    const Session session = workload.Make(i);
    ASSERT_EQ(session.turns.size(), 1u);
    EXPECT_EQ(Words(session.prefix), 50);
    EXPECT_EQ(Words(session.turns[0].text), 15);
    prefixes.insert(session.prefix);
    prompts.insert(session.turns[0].text);
  }
  EXPECT_EQ(prefixes.size(), 4u);
  EXPECT_EQ(prompts.size(), 200u);
}

TEST(SyntheticWorkload, AConversationIsAFunctionOfItsNumber) {
  const SyntheticOptions options{.seed = 3, .turns = 4, .mean_think = std::chrono::seconds(2)};
  const SyntheticWorkload workload(options, {}), same(options, {});
  (void)same.Make(17);
  const Session a = workload.Make(5), b = same.Make(5);
  ASSERT_EQ(a.turns.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(a.turns[i].text, b.turns[i].text);
    EXPECT_EQ(a.turns[i].think, b.turns[i].think);
    EXPECT_EQ(a.turns[i].think > Nanos(0), i > 0);
  }
  EXPECT_NE(a.turns[0].text, a.turns[1].text);
}

sim::Trace SmallTrace() {
  return ParseLoadTrace(R"({"timestamp": 0, "input_length": 1024, "output_length": 90, "hash_ids": [4, 5]}
{"timestamp": 2000, "input_length": 1100, "output_length": 7, "hash_ids": [4, 5, 6]}

{"timestamp": 2000, "input_length": 513, "output_length": 1, "hash_ids": [4, 9]}
)")
      .value();
}

TEST(TraceWorkload, EqualIdsGiveEqualText) {
  const TraceWorkload workload(SmallTrace(), {.seed = 1}, {});
  ASSERT_EQ(workload.size(), 3u);
  const std::string two = workload.Make(0).turns[0].text, three = workload.Make(1).turns[0].text;
  EXPECT_EQ(Words(two), 1024);
  EXPECT_EQ(Words(three), 1100);
  EXPECT_TRUE(three.starts_with(two));
  const std::string other = workload.Make(2).turns[0].text;
  EXPECT_EQ(Words(other), 513);
  EXPECT_FALSE(two.starts_with(other));
  EXPECT_TRUE(two.starts_with(other.substr(0, other.rfind(' '))));
  EXPECT_EQ(workload.Make(1).turns[0].max_tokens, 7u);
}

TEST(TraceWorkload, LengthsAndTimesCanBeScaledAndCapped) {
  const TraceWorkload workload(SmallTrace(), {.seed = 1, .block_tokens = 16, .max_prompt_tokens = 33, .max_tokens = 5},
                               {});
  EXPECT_EQ(Words(workload.Make(0).turns[0].text), 32);
  EXPECT_EQ(Words(workload.Make(1).turns[0].text), 33);
  EXPECT_EQ(Words(workload.Make(2).turns[0].text), 16);
  EXPECT_EQ(workload.Make(0).turns[0].max_tokens, 5u);
  EXPECT_EQ(workload.Make(2).turns[0].max_tokens, 1u);
  EXPECT_EQ(workload.Times(4),
            (std::vector<Nanos>{Nanos(0), std::chrono::milliseconds(500), std::chrono::milliseconds(500)}));
}

TEST(Trace, WhatDoesNotFollowTheSchemaIsRefusedWithItsLine) {
  const std::string good = R"({"timestamp":0,"input_length":5,"output_length":5,"hash_ids":[1]})";
  for (const char* bad : {"{", "[]", R"({"timestamp":-1,"input_length":5,"output_length":5,"hash_ids":[1]})",
                          R"({"timestamp":0,"input_length":0,"output_length":5,"hash_ids":[]})",
                          R"({"timestamp":0,"input_length":5,"output_length":0,"hash_ids":[1]})",
                          R"({"timestamp":0,"input_length":5,"output_length":5,"hash_ids":[1,2]})",
                          R"({"timestamp":0,"input_length":5,"output_length":5,"hash_ids":["a"]})",
                          R"({"timestamp":0,"input_length":5,"hash_ids":[1]})",
                          R"({"timestamp":0,"input_length":99999999999,"output_length":5,"hash_ids":[1]})"}) {
    const auto trace = ParseLoadTrace(good + "\n" + bad + "\n");
    EXPECT_EQ(trace.status().code(), Code::kInvalid) << bad;
    EXPECT_TRUE(trace.status().message().starts_with("line 2: ")) << trace.status().message();
  }
  EXPECT_EQ(ParseLoadTrace("\n").status().code(), Code::kInvalid);
}

Session TwoTurns() {
  Session session;
  session.prefix = " be brief";
  session.turns = {{.text = " hello", .max_tokens = 3}, {.text = " more", .max_tokens = 4}};
  return session;
}

TEST(Conversation, AChatSendsItsHistoryWithTheAnswers) {
  const RequestStyle style{.endpoint = Endpoint::kChat, .model = "m", .ignore_eos = true};
  Conversation conversation(TwoTurns(), style);
  EXPECT_EQ(
      conversation.Body(),
      R"({"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hello"}],"model":"m",)"
      R"("max_tokens":3,"temperature":0,"stream":true,"stream_options":{"include_usage":true},"ignore_eos":true})");
  conversation.Answered("\"hi\"");
  ASSERT_TRUE(conversation.has_turn());
  EXPECT_NE(conversation.Body().find(R"({"role":"assistant","content":"\"hi\""},{"role":"user","content":"more"}])"),
            std::string::npos);
  conversation.Answered("bye");
  EXPECT_FALSE(conversation.has_turn());
}

TEST(Conversation, ACompletionSendsOneText) {
  const RequestStyle style{.endpoint = Endpoint::kCompletions};
  Conversation conversation(TwoTurns(), style);
  conversation.Answered(", you");
  EXPECT_TRUE(conversation.Body().starts_with(R"({"prompt":"be brief hello, you more","max_tokens":4,)"));
}

}  // namespace
}  // namespace cachalot::load
