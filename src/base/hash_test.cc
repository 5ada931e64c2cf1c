#include "base/hash.h"

#include <gtest/gtest.h>

namespace cachalot {
namespace {

std::string HexOfText(std::string_view text) {
  Sha256 hash;
  hash.Update(text);
  return HexOf(hash.Finish());
}

// FIPS 180-4 examples.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(HexOfText(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HexOfText("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HexOfText("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(HexOfText(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheDigestOfTheWholeAndSurviveAMove) {
  Sha256 first;
  first.Update("ab");
  Sha256 second = std::move(first);
  second.Update("c");
  EXPECT_EQ(HexOf(second.Finish()), HexOfText("abc"));
  const std::string_view abc = "abc";
  EXPECT_EQ(HexOf(Sha256Of(std::as_bytes(std::span(abc)))), HexOfText("abc"));
}

TEST(Sha256, FieldsOfDifferentCutsDiffer) {
  const auto digest = [](std::string_view a, std::string_view b) {
    Sha256 hash;
    hash.UpdateField(a);
    hash.UpdateField(b);
    return hash.Finish();
  };
  EXPECT_NE(digest("ab", "c"), digest("a", "bc"));
  EXPECT_NE(digest("", "abc"), digest("abc", ""));
}

TEST(Sha256, IntegersAreLittleEndianOnEveryMachine) {
  Sha256 hash;
  hash.UpdateInt(0x0807060504030201);
  EXPECT_EQ(HexOf(hash.Finish()), HexOfText("\1\2\3\4\5\6\7\10"));
}

TEST(Hash64, IsXxh3) {
  EXPECT_EQ(Hash64(""), 0x2d06800538d394c2u);
  EXPECT_NE(Hash64("a"), Hash64("b"));
  EXPECT_NE(Hash64("a", 1), Hash64("a", 2));
}

}  // namespace
}  // namespace cachalot
