#include "text/nfc.h"

#include <gtest/gtest.h>

#include "text/testing/recorded.h"
#include "text/unicode.h"

namespace cachalot::text {
namespace {

TEST(Nfc, ComposesLettersWithMarksInAnyOrder) {
  EXPECT_EQ(ToNfc("e\u0301"), "\u00e9");
  EXPECT_EQ(ToNfc("d\u0307\u0323"), "\u1e0d\u0307");
  EXPECT_EQ(ToNfc("d\u0323\u0307"), "\u1e0d\u0307");
  EXPECT_EQ(ToNfc("\u1100\u1161\u11a8"), "\uac01");
}

TEST(Nfc, LeavesExcludedCompositionsApart) {
  EXPECT_EQ(ToNfc("\u0958"), "\u0915\u093c");
  EXPECT_EQ(ToNfc("\u212b"), "\u00c5");
}

TEST(Nfc, AMarkOfTheSameClassBlocks) { EXPECT_EQ(ToNfc("a\u0308\u0301"), "\u00e4\u0301"); }

TEST(Nfc, SurrogatesPass) { EXPECT_EQ(ToNfc("\xED\xA0\x80"), "\xED\xA0\x80"); }

TEST(Nfc, EqualsTheRecordedResults) {
  const nlohmann::json recorded = ReadRecorded("pretokenizer.json");
  ASSERT_TRUE(recorded.contains("nfc"));
  for (size_t i = 0; i < recorded["texts"].size(); ++i) {
    const auto text = recorded["texts"][i].get<std::string>();
    const auto composed = recorded["nfc"][i].get<std::string>();
    EXPECT_EQ(ToNfc(text), composed);
    if (IsSurelyNfc(text)) {
      EXPECT_EQ(text, composed);
    }
  }
}

// What the quick check passes is not composed, so it must never pass a text that composing would change.
TEST(Nfc, TheQuickCheckIsNeverWrongAboutOneCharacterAfterALetter) {
  for (char32_t c = 0; c < kCodePointLimit; ++c) {
    std::string text = "a";
    AppendLax(&text, c);
    AppendLax(&text, c);
    if (IsSurelyNfc(text)) {
      ASSERT_EQ(ToNfc(text), text) << "U+" << std::hex << static_cast<uint32_t>(c);
    }
  }
}

}  // namespace
}  // namespace cachalot::text
