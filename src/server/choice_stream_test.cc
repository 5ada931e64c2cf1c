#include "server/choice_stream.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/testing/fake_tokenizer.h"

namespace cachalot::server {
namespace {

class ChoiceStreamTest : public testing::Test {
 protected:
  ChoiceStream Make(const std::vector<std::string>& stops, uint64_t offset = 0) {
    std::shared_ptr<const text::StopSet> set;
    if (!stops.empty()) set = *text::StopSet::Create(stops);
    return ChoiceStream(tokenizer_, set, offset);
  }
  // The pieces of text that come out as the bytes go in, joined by '|'.
  static std::string Pieces(ChoiceStream& stream, std::string_view bytes) {
    std::string pieces;
    for (const char byte : bytes) {
      stream.Push({.token = static_cast<unsigned char>(byte)});
      const std::string piece = stream.TakeText();
      if (!piece.empty()) pieces += piece + "|";
    }
    stream.Finish();
    return pieces + stream.TakeText();
  }
  static std::string Tokens(const std::vector<ShownToken>& tokens) {
    std::string text;
    for (const ShownToken& shown : tokens) text += static_cast<char>(shown.token.token);
    return text;
  }

  FakeTokenizer tokenizer_;
};

TEST_F(ChoiceStreamTest, NeverEmitsHalfACharacter) {
  ChoiceStream stream = Make({});
  EXPECT_EQ(Pieces(stream, "a\xC3\xA9\xF0\x9F\x90\x8Bz"), "a|\xC3\xA9|\xF0\x9F\x90\x8B|z|");
}

TEST_F(ChoiceStreamTest, AnUnfinishedCharacterBecomesAReplacementAtTheEnd) {
  ChoiceStream stream = Make({});
  EXPECT_EQ(Pieces(stream, "a\xF0\x9F"), "a|\xEF\xBF\xBD");
}

TEST_F(ChoiceStreamTest, HoldsBackWhatMayBecomeAStopStringAndCutsThere) {
  ChoiceStream stream = Make({"END"});
  EXPECT_EQ(Pieces(stream, "aENbENDc"), "a|ENb|");
  ChoiceStream unfinished = Make({"END"});
  EXPECT_EQ(Pieces(unfinished, "aEN"), "a|EN");
}

TEST_F(ChoiceStreamTest, ShowsATokenTogetherWithItsText) {
  ChoiceStream stream = Make({"END"});
  std::string shown;
  for (const char byte : std::string("abENc")) {
    stream.Push({.token = static_cast<unsigned char>(byte)});
    shown += Tokens(stream.TakeTokens()) + "|";
  }
  EXPECT_EQ(shown, "a|b|||ENc|");
}

TEST_F(ChoiceStreamTest, TokensOfTheStopStringAreNotShown) {
  ChoiceStream stream = Make({"END"});
  for (const char byte : std::string("abEND")) stream.Push({.token = static_cast<unsigned char>(byte)});
  stream.Finish();
  EXPECT_EQ(Tokens(stream.TakeTokens()), "ab");
  EXPECT_EQ(stream.TakeText(), "ab");
}

TEST_F(ChoiceStreamTest, OffsetsCountCodePoints) {
  ChoiceStream stream = Make({}, 10);
  for (const char byte : std::string("\xC3\xA9z")) stream.Push({.token = static_cast<unsigned char>(byte)});
  const std::vector<ShownToken> tokens = stream.TakeTokens();
  ASSERT_EQ(tokens.size(), 3u);
  EXPECT_EQ(tokens[0].offset, 10u);
  EXPECT_EQ(tokens[2].offset, 11u);
}

TEST_F(ChoiceStreamTest, ControlTokensAreShownWithoutText) {
  ChoiceStream stream = Make({});
  stream.Push({.token = 'a'});
  stream.Push({.token = FakeTokenizer::kTurn});
  EXPECT_EQ(stream.TakeText(), "a");
  EXPECT_EQ(stream.TakeTokens().size(), 2u);
}

}  // namespace
}  // namespace cachalot::server
