#include "sim/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "sim/testing/trace_file.h"
#include "sim/trace_text.h"
#include "sim/workload.h"

namespace cachalot::sim {
namespace {

Trace Make(std::string_view name, const WorkloadOptions& options) {
  auto made = MakeWorkload(name, options);
  EXPECT_TRUE(made.ok()) << name << ": " << made.status().message();
  return std::move(made).value();
}

TEST(Workload, IsATraceAndDependsOnItsSeedAlone) {
  for (const std::string_view name : WorkloadNames()) {
    const std::string text = FormatTrace(Make(name, {.seed = 3, .requests = 400, .block_tokens = 256}));
    const Trace read = testing::Read(text, {.format = "mooncake", .block_tokens = 256}).trace;
    EXPECT_EQ(read.requests.size(), 400u) << name;
    EXPECT_EQ(FormatTrace(read), text);
    EXPECT_EQ(FormatTrace(Make(name, {.seed = 3, .requests = 400, .block_tokens = 256})), text);
    EXPECT_NE(FormatTrace(Make(name, {.seed = 4, .requests = 400, .block_tokens = 256})), text);
  }
}

TEST(Workload, TellsTheTextOfPromptsAndAnswersAndItsBlocksAreThose) {
  for (const std::string_view name : WorkloadNames()) {
    const Trace trace = Make(name, {.seed = 5, .requests = 200, .block_tokens = 64});
    std::map<uint64_t, uint64_t> text_of_block;  // hash of its words and all before
    for (const TraceRequest& request : trace.requests) {
      const std::vector<uint32_t> words = WordsOf(trace, request);
      ASSERT_EQ(words.size(), request.input_tokens + request.output_tokens) << name;
      uint64_t text = 0;
      for (size_t i = 0; i < request.blocks.size(); ++i) {
        const uint64_t tokens = std::min<uint64_t>(64, request.input_tokens - 64 * i);
        text = Hash64(std::as_bytes(std::span(words).subspan(64 * i, tokens)), ~text);
        ASSERT_EQ(text_of_block.emplace(request.blocks[i], text).first->second, text) << name;
      }
    }
    std::set<uint64_t> distinct;
    for (const auto& [id, text] : text_of_block) distinct.insert(text);
    EXPECT_EQ(distinct.size(), text_of_block.size()) << name << ": equal text has several ids";
  }
}

// How many prompts of sessions begin with all that the session's last request said and was answered.
double ContinuingShare(const Trace& trace) {
  std::map<uint64_t, std::vector<uint32_t>> last;
  double continuing = 0, returning = 0;
  for (const TraceRequest& request : trace.requests) {
    if (request.session == 0) continue;
    const std::vector<uint32_t> words = WordsOf(trace, request);
    std::vector<uint32_t>& before = last[request.session];
    if (!before.empty()) {
      ++returning;
      if (before.size() <= request.input_tokens && std::equal(before.begin(), before.end(), words.begin()))
        ++continuing;
    }
    before = words;
  }
  return returning == 0 ? 0 : continuing / returning;
}

TEST(Workload, ConversationsGoOnWithWhatWasAnswered) {
  for (const std::string_view name : {"chat", "agent", "document", "scan"}) {
    EXPECT_EQ(ContinuingShare(Make(name, {.requests = 500})), 1) << name;
  }
  const double taken_over = ContinuingShare(Make("code", {.requests = 2000}));
  EXPECT_GT(taken_over, 0.15);  // most completions are not taken over
  EXPECT_LT(taken_over, 0.5);
}

// Tokens in leading blocks that some earlier request had, as share of all.
double RepeatedShare(const Trace& trace) {
  std::set<uint64_t> seen;
  double repeated = 0, all = 0;
  for (const TraceRequest& request : trace.requests) {
    bool leading = true;
    for (const uint64_t block : request.blocks) {
      leading = !seen.insert(block).second && leading;
      repeated += leading;
      ++all;
    }
  }
  return repeated / all;
}

TEST(Workload, ShuffledPassagesShareTheirWordsButFewPrefixes) {
  const WorkloadOptions options{.requests = 1500, .block_tokens = 16};
  const Trace ordered = Make("rag-ordered", options), shuffled = Make("rag-shuffled", options);
  EXPECT_GT(RepeatedShare(ordered), 1.4 * RepeatedShare(shuffled));
  const auto words_of = [](const Trace& trace) {
    std::vector<uint32_t> words;
    for (const TraceRequest& request : trace.requests) {
      const std::vector<uint32_t> more = WordsOf(trace, request);
      words.insert(words.end(), more.begin(), more.end());
    }
    std::ranges::sort(words);
    return std::ranges::distance(words.begin(), std::ranges::unique(words).begin());
  };
  EXPECT_NEAR(static_cast<double>(words_of(ordered)) / static_cast<double>(words_of(shuffled)), 1, 0.05);
}

TEST(Workload, RefusesWhatItCannotMake) {
  EXPECT_EQ(
      MakeWorkload("chats", {}).status().message(),
      "unknown workload \"chats\": expected one of chat, system, agent, rag, rag-ordered, rag-shuffled, document, "
      "code, scan");
  EXPECT_FALSE(MakeWorkload("chat", {.block_tokens = 0}).ok());
  EXPECT_FALSE(MakeWorkload("chat", {.block_tokens = UINT32_MAX}).ok());
  EXPECT_FALSE(MakeWorkload("chat", {.requests = 10'000'001}).ok());
  EXPECT_TRUE(MakeWorkload("chat", {.requests = 0}).ok());
}

TEST(TextKeeper, TextIsKeptOnceHoweverManyRequestsBeginWithIt) {
  Trace trace{.block_tokens = 16};
  TextKeeper keeper(trace);
  std::vector<uint32_t> words(10'000);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>(i * 2654435761u);
  for (int i = 0; i < 5; ++i) {
    TraceRequest request{.input_tokens = words.size()};
    words.back() = static_cast<uint32_t>(i);
    keeper.NameBlocks(words, &request);
    keeper.KeepText(words, &request);
    EXPECT_EQ(WordsOf(trace, request), words);
    EXPECT_EQ(request.blocks.front(), 0u);
    trace.requests.push_back(request);
  }
  EXPECT_LT(trace.pool.size(), words.size() + 5 * 64);
  EXPECT_LE(trace.requests.back().text.size(), 2u);
  EXPECT_NE(trace.requests[0].blocks.back(), trace.requests[1].blocks.back());
}

TEST(TextKeeper, BlocksStandForTheWordsOfTheMooncakeFormatAsEver) {
  Trace trace{.block_tokens = 4};
  TraceRequest request{.input_tokens = 6, .blocks = {7, 9}};
  std::vector<uint32_t> expected;
  for (const uint64_t block : request.blocks) {
    SplitMix64 random(block);
    for (int i = 0; i < 4 && expected.size() < 6; ++i) expected.push_back(static_cast<uint32_t>(random() >> 32));
  }
  EXPECT_EQ(WordsOf(trace, request), expected);
  SplitMix64 random(7);
  EXPECT_EQ(TokenOf(expected[0], 4096), random.Below(4096));
}

}  // namespace
}  // namespace cachalot::sim
