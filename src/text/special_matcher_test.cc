#include "text/special_matcher.h"

#include <gtest/gtest.h>

#include <string>

namespace cachalot::text {
namespace {

SpecialMatcher Matcher(std::initializer_list<std::string_view> spellings) {
  SpecialMatcher matcher;
  TokenId id = 0;
  for (std::string_view spelling : spellings) matcher.Add(spelling, id++);
  return matcher;
}

std::string MatchIn(const SpecialMatcher& matcher, std::string_view text, size_t from = 0) {
  const auto match = matcher.Next(text, from);
  return match.has_value()
             ? std::to_string(match->id) + "@" + std::to_string(match->begin) + "-" + std::to_string(match->end)
             : "none";
}

TEST(SpecialMatcher, TakesTheLongestOfThoseThatBeginFirst) {
  const SpecialMatcher matcher = Matcher({"\n", "\n\n\n", "<b>", "<b>x"});
  EXPECT_EQ(MatchIn(matcher, "a\n\nb"), "0@1-2");
  EXPECT_EQ(MatchIn(matcher, "a\n\n\n\nb"), "1@1-4");
  EXPECT_EQ(MatchIn(matcher, "<b>x"), "3@0-4");
  EXPECT_EQ(MatchIn(matcher, "<b>"), "2@0-3");
}

TEST(SpecialMatcher, OfOverlappingOnesTheFirstWinsThoughAnotherIsLonger) {
  EXPECT_EQ(MatchIn(Matcher({"ab", "bcd"}), "abcd"), "0@0-2");
}

TEST(SpecialMatcher, FindsNothingInAnUnfinishedSpelling) {
  const SpecialMatcher matcher = Matcher({"<|im_end|>"});
  EXPECT_EQ(MatchIn(matcher, "<|im_end|"), "none");
  EXPECT_EQ(MatchIn(matcher, "<<|im_end|>"), "0@1-11");
  EXPECT_EQ(MatchIn(matcher, "<|im_end|>", 1), "none");
}

TEST(SpecialMatcher, WithoutSpellingsMatchesNothing) { EXPECT_EQ(MatchIn(SpecialMatcher(), "abc"), "none"); }

}  // namespace
}  // namespace cachalot::text
