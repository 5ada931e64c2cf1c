#include "text/stop_matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "text/testing/small_vocab.h"
#include "text/text_stop_condition.h"
#include "text/tokenizer.h"

namespace cachalot::text {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const StopSet> Stops(const std::vector<std::string>& strings) {
  auto set = StopSet::Create(strings);
  EXPECT_TRUE(set.ok()) << set.status().message();
  return std::move(set).value();
}

struct Outcome {
  std::string text;
  std::optional<size_t> matched;
  bool operator==(const Outcome&) const = default;
};

// The first end of any stop string in the text; the longest of those that end there.
Outcome Naive(const std::vector<std::string>& stops, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::optional<size_t> best;
    for (size_t i = 0; i < stops.size(); ++i)
      if (std::string_view(text).substr(0, end).ends_with(stops[i]) && (!best || stops[i].size() > stops[*best].size()))
        best = i;
    if (best.has_value()) return {text.substr(0, end - stops[*best].size()), best};
  }
  return {text, std::nullopt};
}

TEST(StopMatcher, HoldsBackWhatMayBecomeAStopString) {
  StopMatcher matcher(Stops({"END"}));
  EXPECT_EQ(matcher.Push("abcE").emit, "abc");
  EXPECT_EQ(matcher.Push("N").emit, "");
  EXPECT_EQ(matcher.Push("x").emit, "ENx");
  EXPECT_EQ(matcher.Push("EEN").emit, "E");
  EXPECT_EQ(matcher.Finish(), "EN");
}

TEST(StopMatcher, EmitsTheTextBeforeTheMatchAndNothingAfter) {
  StopMatcher matcher(Stops({"\n\n", "END"}));
  EXPECT_EQ(matcher.Push("one E").emit, "one ");
  const StopMatcher::Step step = matcher.Push("ND two\n\n");
  EXPECT_EQ(step.emit, "");
  EXPECT_EQ(step.matched, std::optional<size_t>(1));
  EXPECT_EQ(matcher.Push("more").emit, "");
  EXPECT_EQ(matcher.Push("more").matched, std::optional<size_t>(1));
  EXPECT_EQ(matcher.Finish(), "");
}

TEST(StopMatcher, TheFirstToBeCompleteWinsAndOfTwoAtOnceTheLonger) {
  StopMatcher inner(Stops({"abcd", "bc"}));
  EXPECT_EQ(inner.Push("xabcd").matched, std::optional<size_t>(1));
  StopMatcher both(Stops({"c", "abc"}));
  const StopMatcher::Step step = both.Push("xabc");
  EXPECT_EQ(step.matched, std::optional<size_t>(1));
  EXPECT_EQ(step.emit, "x");
}

TEST(StopMatcher, WithoutStopStringsPassesEverything) {
  StopMatcher none(nullptr);
  EXPECT_EQ(none.Push("abc").emit, "abc");
  EXPECT_EQ(none.Finish(), "");
  StopMatcher empty(Stops({}));
  EXPECT_EQ(empty.Push("abc").emit, "abc");
}

TEST(StopMatcher, EqualsTheNaiveSearchForAnySplit) {
  SplitMix64 random(17);
  for (int round = 0; round < 5000; ++round) {
    const auto word = [&](size_t limit) {
      std::string out(1 + random.Below(limit), 'a');
      for (char& c : out) c = "abc"[random.Below(3)];
      return out;
    };
    std::vector<std::string> stops(1 + random.Below(5));
    for (std::string& stop : stops) stop = word(6);
    const std::string text = word(40);
    StopMatcher matcher(Stops(stops));
    Outcome outcome;
    for (size_t pos = 0; pos < text.size();) {
      const size_t bytes = std::min(text.size() - pos, 1 + random.Below(5));
      StopMatcher::Step step = matcher.Push(std::string_view(text).substr(pos, bytes));
      outcome.text += step.emit;
      pos += bytes;
      outcome.matched = step.matched;
    }
    outcome.text += matcher.Finish();
    ASSERT_EQ(outcome, Naive(stops, text)) << text;
  }
}

TEST(StopMatcher, ThousandsOfStringsAndAMegabyteOfTextAreQuick) {
  std::vector<std::string> stops;
  for (int i = 0; i < 8000; ++i) stops.push_back(std::string(100, 'a') + std::to_string(i));
  StopMatcher matcher(Stops(stops));
  std::string emitted;
  for (int i = 0; i < (1 << 20); ++i) emitted += matcher.Push("a").emit;
  EXPECT_EQ(emitted.size() + 100, size_t{1} << 20);
  EXPECT_EQ(matcher.Push("4321").matched, std::optional<size_t>(4));  // "...a4"
}

TEST(StopMatcher, RefusesWhatNobodyCanMean) {
  const auto error = [](const std::vector<std::string>& strings) {
    const auto set = StopSet::Create(strings);
    return set.ok() ? "" : set.status().message();
  };
  EXPECT_THAT(error({"a", ""}), HasSubstr("stop string 1 is empty"));
  EXPECT_THAT(error({"\xFF"}), HasSubstr("stop string 0 is not valid UTF-8"));
  EXPECT_THAT(error(std::vector<std::string>(StopSet::kMaxStrings + 1, "a")), HasSubstr("at most 8192"));
  EXPECT_THAT(error({std::string(StopSet::kMaxTotalBytes, 'a'), "a"}), HasSubstr("more than"));
}

TEST(TextStopCondition, SeesAStopStringThatSpansTokens) {
  SmallVocab vocab = SmallVocab::ByteLevel("gpt-2", {"a b"});
  const auto tokenizer = Tokenizer::Create(vocab.data());
  ASSERT_TRUE(tokenizer.ok());
  TextStopCondition condition(**tokenizer, Stops({"bé"}));
  const auto push = [&](std::string_view text) {
    bool stopped = false;
    for (TokenId id : (*tokenizer)->Encode(text, {})) stopped = condition.Push(id);
    return stopped;
  };
  EXPECT_FALSE(push("xab"));
  EXPECT_FALSE(push("b\xC3"));
  EXPECT_FALSE(push("b"));
  EXPECT_TRUE(push("é"));
}

}  // namespace
}  // namespace cachalot::text
