#include "base/utf8.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace cachalot {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

TEST(Utf8, EveryCodePointSurvivesEncodingAndDecoding) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    std::string text;
    AppendUtf8(&text, c);
    const Utf8Char decoded = DecodeUtf8(text, 0);
    const bool surrogate = c >= 0xD800 && c <= 0xDFFF;
    ASSERT_EQ(decoded.code_point, surrogate ? kReplacementCharacter : c);
    ASSERT_EQ(decoded.bytes, text.size());
    ASSERT_TRUE(decoded.valid);
  }
}

TEST(Utf8, CodePointsPastTheEndBecomeTheReplacementCharacter) {
  std::string text;
  AppendUtf8(&text, 0x110000);
  AppendUtf8(&text, 0xFFFFFFFF);
  EXPECT_EQ(text, std::string(kReplacement) + kReplacement);
}

TEST(Utf8, OverlongSurrogateAndTooLargeFormsAreInvalid) {
  for (const char* bad : {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF", "\xED\xA0\x80", "\xED\xBF\xBF",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\x80", "\xBF"}) {
    EXPECT_EQ(FindInvalidUtf8(bad), 0u) << bad;
    EXPECT_EQ(DecodeUtf8(bad, 0).bytes, 1u) << bad;
  }
}

// The table of Unicode 15, 3.9, "Best practices for using U+FFFD".
TEST(Utf8, MaximalSubpartsAreReplacedOneByOne) {
  const std::string r = kReplacement;
  EXPECT_EQ(ReplaceInvalidUtf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), r + r + r + r + r + r + r + r + "A");
  EXPECT_EQ(ReplaceInvalidUtf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), r + r + r + r + r + "A" + r + r + "B");
  EXPECT_EQ(ReplaceInvalidUtf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), r + r + r + r + "A");
}

TEST(Utf8, FindInvalidGivesTheOffsetOfTheBadCharacter) {
  EXPECT_EQ(FindInvalidUtf8(""), std::string_view::npos);
  EXPECT_EQ(FindInvalidUtf8("h\xC3\xA9llo \xF0\x9F\x90\x8B"), std::string_view::npos);
  EXPECT_EQ(FindInvalidUtf8("h\xC3\xA9llo \xF0\x9F\x90"), 7u);
}

TEST(Utf8, IncompleteSuffixCountsOnlyWhatMoreBytesCouldComplete) {
  EXPECT_EQ(IncompleteUtf8Suffix(""), 0u);
  EXPECT_EQ(IncompleteUtf8Suffix("abc"), 0u);
  EXPECT_EQ(IncompleteUtf8Suffix("a\xC3"), 1u);
  EXPECT_EQ(IncompleteUtf8Suffix("a\xC3\xA9"), 0u);
  EXPECT_EQ(IncompleteUtf8Suffix("\xF0\x9F\x90"), 3u);
  EXPECT_EQ(IncompleteUtf8Suffix("\xF0\x9F"), 2u);
  EXPECT_EQ(IncompleteUtf8Suffix("\xE2\x82"), 2u);
  EXPECT_EQ(IncompleteUtf8Suffix("\xE0\x80"), 0u);  // no character begins so
  EXPECT_EQ(IncompleteUtf8Suffix("\xED\xA0"), 0u);  // a surrogate
  EXPECT_EQ(IncompleteUtf8Suffix("\x80\x80\x80"), 0u);
  EXPECT_EQ(IncompleteUtf8Suffix("\xFF"), 0u);
}

// What is left after cutting text anywhere is a suffix that the rest completes.
TEST(Utf8, CuttingValidTextAnywhereLeavesAWholePrefix) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\x8B z";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const std::string_view head = std::string_view(text).substr(0, cut);
    const size_t held = IncompleteUtf8Suffix(head);
    EXPECT_EQ(FindInvalidUtf8(head.substr(0, cut - held)), std::string_view::npos) << cut;
  }
}

TEST(Utf8, RandomBytesAlwaysAdvanceAndRepairToValidText) {
  SplitMix64 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (uint64_t n = random.Below(24); n > 0; --n) text.push_back(static_cast<char>(random() >> 3));
    const std::string repaired = ReplaceInvalidUtf8(text);
    ASSERT_EQ(FindInvalidUtf8(repaired), std::string_view::npos);
    ASSERT_EQ(repaired == text, FindInvalidUtf8(text) == std::string_view::npos);
    ASSERT_LE(IncompleteUtf8Suffix(text), 3u);
  }
}

}  // namespace
}  // namespace cachalot
