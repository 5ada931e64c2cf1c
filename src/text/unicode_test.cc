#include "text/unicode.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/utf8.h"

namespace cachalot::text {
namespace {

TEST(Unicode, ClassesOfSomeCharacters) {
  const auto class_of = [](char32_t c) { return static_cast<CharClass>(UnicodeClasses()[c] & kClassMask); };
  EXPECT_EQ(class_of('a'), CharClass::kLetter);
  EXPECT_EQ(class_of(0x4E2D), CharClass::kLetter);
  EXPECT_EQ(class_of(0x1C89), CharClass::kLetter);  // since Unicode 16.0
  EXPECT_EQ(class_of('7'), CharClass::kNumber);
  EXPECT_EQ(class_of(0x216B), CharClass::kNumber);  // Roman twelve
  EXPECT_EQ(class_of(0x3000), CharClass::kSpace);
  EXPECT_EQ(class_of(0x85), CharClass::kSpace);
  EXPECT_EQ(class_of(0x180E), CharClass::kOther);  // a space once, not since Unicode 6.3
  EXPECT_EQ(class_of(0x301), CharClass::kOther);
  EXPECT_EQ(class_of(0x10FFFF), CharClass::kOther);
}

TEST(Unicode, LenientDecodingEqualsStrictDecodingOfValidText) {
  for (char32_t c = 0; c < kCodePointLimit; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string lax, strict;
    AppendLax(&lax, c);
    AppendUtf8(&strict, c);
    ASSERT_EQ(lax, strict);
    const LaxChar read = DecodeLax(strict, 0);
    ASSERT_EQ(read.code_point, c);
    ASSERT_EQ(read.bytes, strict.size());
  }
}

// What llama.cpp makes of invalid UTF-8.
TEST(Unicode, LenientDecodingOfInvalidText) {
  EXPECT_EQ(ReadLax("a\xFF\x80z"), "a\uFFFD\uFFFDz");                            // one for each byte
  EXPECT_EQ(ReadLax("\xE2\x82z"), "\uFFFD\uFFFDz");                              // cut short by another character
  EXPECT_EQ(ReadLax("\xF0\x9F\x98"), "\uFFFD\uFFFD\uFFFD");                      // cut short by the end
  EXPECT_EQ(ReadLax("\xC1\xA1"), "a");                                           // overlong
  EXPECT_EQ(ReadLax("\xED\xA0\x80"), "\xED\xA0\x80");                            // a surrogate
  EXPECT_EQ(ReadLax("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");            // past 10FFFF: llama.cpp stops there
  EXPECT_EQ(ReadLax("\xF8\x88\x80\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");  // five bytes
}

TEST(Unicode, LenientDecodingAdvancesThroughAnyBytes) {
  SplitMix64 random(2);
  for (int round = 0; round < 10000; ++round) {
    std::string text(1 + random.Below(8), '\0');
    for (char& c : text) c = static_cast<char>(random.Below(256));
    size_t pos = 0;
    while (pos < text.size()) {
      const LaxChar c = DecodeLax(text, pos);
      ASSERT_GE(c.bytes, 1u);
      ASSERT_LT(c.code_point, kCodePointLimit);
      pos += c.bytes;
    }
    ASSERT_EQ(pos, text.size());
  }
}

}  // namespace
}  // namespace cachalot::text
