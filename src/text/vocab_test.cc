#include "text/vocab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/testing/small_vocab.h"

namespace cachalot::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(SmallVocab& vocab) {
  const Result<Vocab> built = Vocab::Build(vocab.data());
  return built.ok() ? "" : std::string(CodeName(built.status().code())) + ": " + built.status().message();
}

SmallVocab Letters() {
  SmallVocab vocab("gpt2", "gpt-2");
  vocab.Token("a").Token("b").Token("<x>", kControlType);
  return vocab;
}

TEST(Vocab, FindsTokensBySpelling) {
  SmallVocab letters = Letters();
  const Result<Vocab> vocab = Vocab::Build(letters.data());
  ASSERT_TRUE(vocab.ok());
  EXPECT_EQ(vocab->size(), 3u);
  EXPECT_EQ(vocab->Find("b"), TokenId{1});
  EXPECT_EQ(vocab->Find("c"), std::nullopt);
  EXPECT_EQ(vocab->spelling(2), "<x>");
  EXPECT_TRUE(vocab->IsText(0));
  EXPECT_FALSE(vocab->IsText(2));
}

TEST(Vocab, KeepsItsSpellingsWhenMoved) {
  SmallVocab letters = Letters();
  Result<Vocab> built = Vocab::Build(letters.data());
  ASSERT_TRUE(built.ok());
  const Vocab moved = std::move(built).value();
  EXPECT_EQ(moved.Find("a"), TokenId{0});
}

TEST(Vocab, NamesWhatIsInconsistent) {
  SmallVocab empty("gpt2");
  EXPECT_THAT(ErrorOf(empty), HasSubstr("tokenizer.ggml.tokens is missing or empty"));

  SmallVocab twice = Letters();
  twice.Token("a");
  EXPECT_THAT(ErrorOf(twice), HasSubstr("tokens 0 and 3 have the same spelling \"a\""));

  SmallVocab types = Letters();
  types.data().token_types.pop_back();
  EXPECT_THAT(ErrorOf(types), HasSubstr("tokenizer.ggml.token_type has 2 entries, expected one per token: 3"));

  SmallVocab odd = Letters();
  odd.data().token_types[1] = 7;
  EXPECT_THAT(ErrorOf(odd), HasSubstr("tokenizer.ggml.token_type[1] is 7, expected 1 to 6"));

  SmallVocab bos = Letters();
  bos.data().bos = 3;
  EXPECT_THAT(ErrorOf(bos), HasSubstr("tokenizer.ggml.bos_token_id is 3, but there are 3 tokens"));

  SmallVocab huge = Letters();
  huge.data().end_of_turn = ~uint64_t{0};
  EXPECT_THAT(ErrorOf(huge), HasSubstr("tokenizer.ggml.eot_token_id is 18446744073709551615"));

  SmallVocab lengthy = Letters();
  lengthy.Token(std::string(kMaxSpellingBytes + 1, 'x'));
  EXPECT_THAT(ErrorOf(lengthy), HasSubstr("token 3 \"xxx"));
}

TEST(Vocab, ManyTokensMayBeEmpty) {
  SmallVocab vocab = Letters();
  vocab.Token("").Token("");
  EXPECT_EQ(ErrorOf(vocab), "");
}

TEST(Vocab, EndTokensComeFromTheMetadataAndFromWellKnownSpellings) {
  SmallVocab vocab = Letters();
  vocab.Token("<|im_end|>", kControlType).Token("<|endoftext|>", kControlType).Token("<|eot_id|>", kUserDefinedType);
  vocab.data().eos = 3;
  vocab.data().end_of_turn = 2;
  const Result<Vocab> built = Vocab::Build(vocab.data());
  ASSERT_TRUE(built.ok());
  EXPECT_THAT(built->end_tokens(), ElementsAre(2, 3, 4, 5));
}

TEST(Vocab, AStrikethroughTagEndsNothing) {
  SmallVocab vocab = Letters();
  vocab.Token("</s>", kUserDefinedType).Token("<eos>", kControlType);
  const Result<Vocab> built = Vocab::Build(vocab.data());
  ASSERT_TRUE(built.ok());
  EXPECT_THAT(built->end_tokens(), ElementsAre(4));
}

TEST(Vocab, ByteSpellings) {
  EXPECT_EQ(ByteOfSpelling("<0x00>"), uint8_t{0});
  EXPECT_EQ(ByteOfSpelling("<0xFE>"), uint8_t{0xFE});
  for (const char* other : {"<0xfe>", "<0x1>", "<0x123>", "0x12", "", "<0xG0>"})
    EXPECT_EQ(ByteOfSpelling(other), std::nullopt) << other;
}

TEST(Vocab, QuotesAnyBytes) {
  EXPECT_EQ(Quote("caf\u00e9"), "\"caf\u00e9\"");
  EXPECT_EQ(Quote("a\"\n\xFF"), "\"a\\x22\\x0a\\xff\"");
  EXPECT_EQ(Quote(std::string(100, 'x')), "\"" + std::string(60, 'x') + "\"...");
}

}  // namespace
}  // namespace cachalot::text
