#include "text/stream_decoder.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "base/utf8.h"
#include "text/testing/small_vocab.h"
#include "text/tokenizer.h"

namespace cachalot::text {
namespace {

std::unique_ptr<const Tokenizer> Make(SmallVocab vocab) {
  auto made = Tokenizer::Create(vocab.data());
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

std::unique_ptr<const Tokenizer> Pieces() { return Make(SmallVocab::Pieces({"▁a", "▁", "a", "é", "▁▁"})); }

TEST(StreamDecoder, HoldsBackHalfACharacter) {
  const auto tokenizer = Pieces();
  StreamDecoder decoder(*tokenizer, false);
  EXPECT_EQ(decoder.Push(3 + 0xF0), "");
  EXPECT_EQ(decoder.Push(3 + 0x9F), "");
  EXPECT_EQ(decoder.Push(3 + 0x98), "");
  EXPECT_EQ(decoder.Push(3 + 0x80), "\U0001F600");
  EXPECT_EQ(decoder.Push(3 + 0xC3), "");
  EXPECT_EQ(decoder.Push(261), "\uFFFDa");
  EXPECT_EQ(decoder.Push(3 + 0xC3), "");
  EXPECT_EQ(decoder.Finish(), "\uFFFD");
  EXPECT_EQ(decoder.Finish(), "");
}

TEST(StreamDecoder, DropsTheSpaceOfAWholeTextButNotOfAContinuation) {
  const auto tokenizer = Pieces();
  StreamDecoder whole(*tokenizer, false);
  EXPECT_EQ(whole.Push(1), "");  // <s> is not text
  EXPECT_EQ(whole.Push(259), "a");
  EXPECT_EQ(whole.Push(259), " a");
  StreamDecoder continuation(*tokenizer, false, DecodeFrom::kContinuation);
  EXPECT_EQ(continuation.Push(259), " a");
}

TEST(StreamDecoder, WritesControlTokensOutWhenAsked) {
  const auto tokenizer = Pieces();
  StreamDecoder decoder(*tokenizer, true);
  EXPECT_EQ(decoder.Push(1), "<s>");
  EXPECT_EQ(decoder.Push(259), " a");
}

TEST(StreamDecoder, PiecesTogetherAreTheWholeTextWithReplacements) {
  SmallVocab byte_level = SmallVocab::ByteLevel("gpt-2", {"Ġ a", "Ã ©", "ð Ł", "ðŁ ĺ", "â Ĥ"});
  byte_level.Token("<|end|>", kControlType);
  const std::unique_ptr<const Tokenizer> tokenizers[] = {Pieces(), Make(std::move(byte_level))};
  SplitMix64 random(9);
  for (int round = 0; round < 4000; ++round) {
    const Tokenizer& tokenizer = *tokenizers[round % 2];
    const bool with_special = random.Below(2) == 1;
    std::vector<TokenId> ids(random.Below(30));
    for (TokenId& id : ids) id = static_cast<TokenId>(random.Below(tokenizer.vocabulary_size() + 2));
    StreamDecoder decoder(tokenizer, with_special);
    std::string text;
    for (TokenId id : ids) {
      const std::string piece = decoder.Push(id);
      ASSERT_EQ(FindInvalidUtf8(piece), std::string::npos);
      text += piece;
    }
    text += decoder.Finish();
    ASSERT_EQ(text, ReplaceInvalidUtf8(tokenizer.Decode(ids, with_special)));
  }
}

}  // namespace
}  // namespace cachalot::text
