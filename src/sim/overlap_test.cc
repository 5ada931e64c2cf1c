#include "sim/overlap.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "base/random.h"
#include "sim/profile.h"
#include "sim/reorder.h"
#include "sim/testing/made_trace.h"
#include "sim/trace_text.h"

namespace cachalot::sim {
namespace {

using Words = std::vector<uint32_t>;
using testing::Ask;
using testing::MadeTrace;
using testing::TextOf;

std::vector<Words> RandomTexts(uint64_t seed, size_t count, uint32_t alphabet, size_t longest) {
  SplitMix64 random(seed);
  std::vector<Words> texts(count);
  for (size_t i = 0; i < count; ++i) {
    // Often a piece of an earlier text first.
    if (i > 0 && random.Below(3) > 0) {
      const Words& earlier = texts[random.Below(i)];
      texts[i].assign(earlier.begin(), earlier.begin() + static_cast<ptrdiff_t>(random.Below(earlier.size() + 1)));
    }
    const uint64_t more = random.Below(longest);
    for (uint64_t k = 0; k < more; ++k) texts[i].push_back(static_cast<uint32_t>(random.Below(alphabet)));
  }
  return texts;
}

TEST(MatchPrefixes, IsWhatComparingWithAllEarlierTextsSays) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<Words> texts = RandomTexts(seed, 1 + seed % 40, 2 + seed % 3, 12);
    const std::vector<std::span<const uint32_t>> spans(texts.begin(), texts.end());
    const std::vector<PrefixMatch> matches = MatchPrefixes<uint32_t>(spans);
    for (size_t i = 0; i < texts.size(); ++i) {
      uint64_t longest = 0;
      for (size_t j = 0; j < i; ++j) longest = std::max(longest, CommonLength(spans[i], spans[j]));
      ASSERT_EQ(matches[i].length, longest) << "seed " << seed << " text " << i;
      if (longest == 0) continue;
      ASSERT_LT(matches[i].with, i);
      ASSERT_EQ(CommonLength(spans[i], spans[matches[i].with]), longest);
    }
  }
}

// A word counts as found when it is in kLeastRun words, behind `from`, that an earlier text has in this order.
std::vector<bool> FoundByBruteForce(const std::vector<Words>& earlier, const Words& words, uint64_t from) {
  std::vector<bool> found(words.size());
  constexpr ptrdiff_t kRun = RepeatedText::kLeastRun;
  for (auto at = words.begin() + static_cast<ptrdiff_t>(from); words.end() - at >= kRun; ++at) {
    const bool known = std::ranges::any_of(
        earlier, [&](const Words& text) { return std::search(text.begin(), text.end(), at, at + kRun) != text.end(); });
    if (known) std::fill_n(found.begin() + (at - words.begin()), kRun, true);
  }
  return found;
}

TEST(RepeatedText, FindsWhatSearchingAllEarlierTextsFinds) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SplitMix64 random(seed);
    RepeatedText repeated(/*one_of=*/1);
    std::vector<Words> texts(12);
    for (size_t i = 0; i < texts.size(); ++i) {
      // Pieces of earlier texts, and words between them.
      while (texts[i].size() < 120) {
        const Words& earlier = texts[random.Below(i + 1)];
        const uint64_t begin = random.Below(earlier.size() + 1), length = random.Below(40);
        for (uint64_t k = begin; k < std::min<uint64_t>(begin + length, earlier.size()); ++k) {
          texts[i].push_back(uint32_t{earlier[k]});
        }
        for (uint64_t k = random.Below(4); k > 0; --k) texts[i].push_back(static_cast<uint32_t>(random.Below(50)));
      }
    }
    for (size_t i = 0; i < texts.size(); ++i) {
      const uint64_t from = random.Below(10);
      const std::vector<RepeatedRun> runs = repeated.Find(texts[i], from, i);
      std::vector<bool> found(texts[i].size());
      uint64_t end = from;
      for (const RepeatedRun& run : runs) {
        ASSERT_GE(run.begin, end);
        end = run.begin + run.words;
        ASSERT_LE(end, texts[i].size());
        for (uint64_t k = 0; k < run.words; ++k) {
          found[run.begin + k] = true;
          ASSERT_EQ(texts[i][run.begin + k], texts[run.text][run.place + k]);
        }
      }
      ASSERT_EQ(found, FoundByBruteForce({texts.begin(), texts.begin() + static_cast<ptrdiff_t>(i)}, texts[i], from))
          << "seed " << seed << " text " << i;
      repeated.Add(texts[i], 0);
    }
  }
}

// A system prompt of 1,000 tokens with something at position 37 that is new each time, then a question.
Trace StampedTrace(size_t requests, uint32_t stamp_tokens) {
  MadeTrace made;
  for (uint64_t i = 0; i < requests; ++i) {
    made.Add(Ask{
        .prompt = {TextOf(1, 0, 37), TextOf(1000 + i, 0, stamp_tokens), TextOf(1, 37, 963), TextOf(5000 + i, 0, 100)},
        .output = 20});
  }
  return std::move(made).Take();
}

TEST(Profile, FindsTheStampInTheSystemPromptAtItsToken) {
  const Trace trace = StampedTrace(100, 6);
  const TrafficProfile profile = ProfileTraffic(trace, FindOverlap(trace));
  EXPECT_TRUE(profile.text_known);
  EXPECT_EQ(profile.position_tokens, 1u);
  EXPECT_EQ(profile.reusable_tokens, 99u * 37);
  ASSERT_FALSE(profile.divergences.empty());
  const Divergence& worst = profile.divergences.front();
  EXPECT_EQ(worst.position, 37u);
  EXPECT_EQ(worst.change, Change::kEdited);
  EXPECT_EQ(worst.requests, 99u);
  EXPECT_EQ(worst.changed_tokens, 6u);
  EXPECT_EQ(worst.values, 99u);
  EXPECT_EQ(worst.lost_tokens, 99u * 963);
  EXPECT_EQ(profile.edited_tokens, 99u * 963);
  EXPECT_EQ(profile.moved_tokens, 0u);
}

TEST(Profile, AStampWhoseFirstTokensAreOftenTheSameIsOneKind) {
  // A time of day: the hour changes seldom, the minute more often, the second always.
  MadeTrace made;
  for (uint64_t i = 0; i < 200; ++i) {
    made.Add(Ask{.prompt = {TextOf(1, 0, 37), TextOf(100 + i / 60, 0, 2), TextOf(200 + i / 6, 0, 2),
                            TextOf(900 + i, 0, 2), TextOf(1, 37, 500)},
                 .output = 20});
  }
  const Trace trace = std::move(made).Take();
  const TrafficProfile profile = ProfileTraffic(trace, FindOverlap(trace));
  ASSERT_EQ(profile.divergences.size(), 1u);
  EXPECT_EQ(profile.divergences[0].position, 37u);
  EXPECT_EQ(profile.divergences[0].requests, 199u);
  EXPECT_EQ(profile.divergences[0].changed_tokens, 6u);
  EXPECT_EQ(profile.divergences[0].values, 199u);
  EXPECT_EQ(profile.divergences[0].lost_tokens, 199u * 500);
}

TEST(Profile, FindsTheBlockWhereOnlyBlocksAreKnown) {
  Trace trace = StampedTrace(100, 6);
  for (TraceRequest& request : trace.requests) request.text.clear();
  const TrafficProfile profile = ProfileTraffic(trace, FindOverlap(trace));
  EXPECT_FALSE(profile.text_known);
  EXPECT_EQ(profile.position_tokens, 16u);
  ASSERT_FALSE(profile.divergences.empty());
  EXPECT_EQ(profile.divergences.front().position, 32u);  // the block that holds token 37 begins there
  EXPECT_EQ(profile.divergences.front().requests, 99u);
  EXPECT_EQ(profile.divergences.front().change, Change::kNew);  // what stands behind it nobody can know
  EXPECT_EQ(profile.reusable_tokens, 99u * 32);
}

TEST(Profile, ChainedWordsTellThePositionButNotWhatIsBehind) {
  Trace trace = StampedTrace(50, 6);
  trace.chained = true;
  for (TraceRequest& request : trace.requests) {
    Words words = WordsOf(trace, request);
    for (size_t i = 1; i < words.size(); ++i) words[i] ^= words[i - 1] * 0x9E3779B1u;
    request.text = {{.source = TextRun::kPool, .begin = trace.pool.size(), .tokens = words.size()}};
    trace.pool.insert(trace.pool.end(), words.begin(), words.end());
  }
  const TrafficProfile profile = ProfileTraffic(trace, FindOverlap(trace));
  EXPECT_FALSE(profile.text_known);
  EXPECT_EQ(profile.position_tokens, 1u);
  ASSERT_FALSE(profile.divergences.empty());
  EXPECT_EQ(profile.divergences.front().position, 37u);
  EXPECT_EQ(profile.divergences.front().change, Change::kNew);
  EXPECT_EQ(profile.edited_tokens + profile.moved_tokens, 0u);
}

// The four documents, of 400 tokens each, about one of twelve subjects, in any order, behind a system prompt of 200.
Trace ShuffledDocuments(uint64_t requests) {
  SplitMix64 random(7);
  MadeTrace made;
  for (uint64_t i = 0; i < requests; ++i) {
    const uint64_t subject = random.Below(12);
    std::vector<TextRun> documents;
    for (uint64_t k = 0; k < 4; ++k) documents.push_back(TextOf(100 + 4 * subject + k, 0, 400));
    for (uint64_t k = 3; k > 0; --k) std::swap(documents[k], documents[random.Below(k + 1)]);
    Ask ask{.prompt = {TextOf(1, 0, 200)}, .output = 20};
    ask.prompt.insert(ask.prompt.end(), documents.begin(), documents.end());
    ask.prompt.push_back(TextOf(5000 + i, 0, 50));
    made.Add(ask);
  }
  return std::move(made).Take();
}

TEST(Profile, ShuffledDocumentsAreTextThatMoved) {
  const Trace trace = ShuffledDocuments(200);
  const TrafficProfile profile = ProfileTraffic(trace, FindOverlap(trace));
  ASSERT_FALSE(profile.divergences.empty());
  EXPECT_EQ(profile.divergences.front().position, 200u);
  EXPECT_EQ(profile.divergences.front().change, Change::kMoved);
  // Nearly all text of documents was there before: what is not found at the front was lost to the order.
  EXPECT_GT(profile.moved_tokens, profile.prompt_tokens / 4);
  EXPECT_LT(profile.edited_tokens, profile.prompt_tokens / 100);
  EXPECT_EQ(profile.reusable_tokens + profile.edited_tokens + profile.moved_tokens + profile.new_tokens(),
            profile.prompt_tokens);
  EXPECT_LE(profile.new_tokens(), 200u + 48 * 400 + 200 * 50);
}

TEST(Profile, AConversationGoesOnAndDivergesNowhere) {
  MadeTrace made;
  for (uint64_t turn = 0; turn < 5; ++turn) {
    for (uint64_t talk = 0; talk < 4; ++talk) {
      made.Add(Ask{.prompt = {TextOf(1, 0, 100), TextOf(50 + talk, 0, 200 * (turn + 1))}, .output = 30});
    }
  }
  const Trace trace = std::move(made).Take();
  const TrafficProfile profile = ProfileTraffic(trace, FindOverlap(trace));
  EXPECT_EQ(profile.returns.size(), 16u);
  for (const Return& r : profile.returns) EXPECT_EQ(r.later - r.earlier, 4u);
  ASSERT_EQ(profile.divergences.size(), 1u);  // where the talks part
  EXPECT_EQ(profile.divergences[0].position, 100u);
  EXPECT_EQ(profile.divergences[0].change, Change::kNew);
  EXPECT_EQ(profile.edited_tokens + profile.moved_tokens, 0u);
}

TEST(Profile, SessionsAndTenantsAreCountedWhereTheyAreNamed) {
  MadeTrace made;
  for (uint64_t i = 0; i < 12; ++i) {
    made.Add(Ask{.prompt = {TextOf(i, 0, 50)}, .output = 5, .session = i % 3, .tenant = i < 9 ? 7u : 8u});
  }
  const Trace trace = std::move(made).Take();
  const TrafficProfile profile = ProfileTraffic(trace, FindOverlap(trace));
  EXPECT_EQ(profile.sessions, 2u);  // 0 is none
  EXPECT_EQ(profile.returns.size(), 6u);
  EXPECT_EQ(profile.tenants, 2u);
  EXPECT_DOUBLE_EQ(profile.largest_tenant, 0.75);
}

TEST(Profile, SpreadsAreValuesThatOccur) {
  std::vector<uint64_t> values(100);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 100 - i;
  const CountSpread spread = SpreadOf(values);
  EXPECT_EQ(spread.p50, 50u);
  EXPECT_EQ(spread.p90, 90u);
  EXPECT_EQ(spread.p99, 99u);
  EXPECT_EQ(spread.most, 100u);
  EXPECT_EQ(SpreadOf({}).most, 0u);
}

void ExpectSameWords(const Trace& a, const Trace& b) {
  ASSERT_EQ(a.requests.size(), b.requests.size());
  for (size_t i = 0; i < a.requests.size(); ++i) {
    Words x = WordsOf(a, a.requests[i]), y = WordsOf(b, b.requests[i]);
    std::ranges::sort(x);
    std::ranges::sort(y);
    ASSERT_EQ(x, y) << "request " << i;
    EXPECT_EQ(a.requests[i].input_tokens, b.requests[i].input_tokens);
    EXPECT_EQ(a.requests[i].arrival, b.requests[i].arrival);
  }
}

TEST(Reordered, PutsTheStampBehindWhatIsAlike) {
  const Trace trace = StampedTrace(100, 6);
  const Trace reordered = Reordered(trace, FindOverlap(trace));
  ExpectSameWords(trace, reordered);
  const TrafficProfile profile = ProfileTraffic(reordered, FindOverlap(reordered));
  EXPECT_GE(profile.reusable_tokens, 98u * 1000);
}

TEST(Reordered, DocumentsInOneOrderAreFoundMoreOften) {
  const Trace trace = ShuffledDocuments(200);
  const Trace reordered = Reordered(trace, FindOverlap(trace));
  ExpectSameWords(trace, reordered);
  const TrafficProfile before = ProfileTraffic(trace, FindOverlap(trace));
  const TrafficProfile after = ProfileTraffic(reordered, FindOverlap(reordered));
  EXPECT_GT(after.reusable_tokens, before.reusable_tokens * 5 / 4);
  EXPECT_GE(after.reusable_tokens, before.reusable_tokens + before.moved_tokens * 9 / 10);
}

TEST(Reordered, AConversationThatBeginsWithItsOwnStampGoesOnAsBefore) {
  MadeTrace made;
  for (uint64_t turn = 0; turn < 4; ++turn) {
    for (uint64_t talk = 0; talk < 6; ++talk) {
      made.Add(Ask{.prompt = {TextOf(1, 0, 37), TextOf(50 + talk, 0, 4), TextOf(1, 37, 500),
                              TextOf(80 + talk, 0, 100 * (turn + 1))},
                   .output = 30});
    }
  }
  const Trace trace = std::move(made).Take();
  const Trace reordered = Reordered(trace, FindOverlap(trace));
  ExpectSameWords(trace, reordered);
  const TrafficProfile before = ProfileTraffic(trace, FindOverlap(trace));
  const TrafficProfile after = ProfileTraffic(reordered, FindOverlap(reordered));
  EXPECT_EQ(before.edited_tokens, 5u * 500);
  EXPECT_GE(after.reusable_tokens, before.reusable_tokens + 4 * 500);
}

}  // namespace
}  // namespace cachalot::sim
