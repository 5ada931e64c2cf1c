#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "model/gguf.h"
#include "model/testing/gguf_builder.h"
#include "text/testing/recorded.h"
#include "text/testing/small_vocab.h"

namespace cachalot::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Made = Result<std::unique_ptr<const Tokenizer>>;

std::string ErrorOf(SmallVocab& vocab) {
  const Made made = Tokenizer::Create(vocab.data());
  return made.ok() ? "" : std::string(CodeName(made.status().code())) + ": " + made.status().message();
}

std::unique_ptr<const Tokenizer> Make(SmallVocab vocab) {
  Made made = Tokenizer::Create(vocab.data());
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? std::move(made).value() : nullptr;
}

// The first 256 ids are the bytes.
SmallVocab ByteLevel(std::string_view pre = "gpt-2") {
  return SmallVocab::ByteLevel(pre, {"h e", "l l", "he ll", "hell o", "Ġ w"});
}

TEST(Tokenizer, MergesByRankInsideAPreToken) {
  SmallVocab vocab = ByteLevel();
  const auto tokenizer = Make(vocab);
  const std::vector<TokenId> ids = tokenizer->Encode("hello w", {});
  EXPECT_THAT(ids, ElementsAre(259, 260));
  EXPECT_EQ(tokenizer->Decode(ids, false), "hello w");
  EXPECT_EQ(tokenizer->Spelling(260), "Ġw");
  EXPECT_EQ(tokenizer->TokenBytes(260, false), " w");
}

TEST(Tokenizer, ControlTokensAreReadOnlyWhenAsked) {
  SmallVocab vocab = ByteLevel();
  vocab.Token("<|end|>", kControlType).Token("<tool>", kUserDefinedType);
  const auto tokenizer = Make(std::move(vocab));
  EXPECT_THAT(tokenizer->Encode("<|end|><tool>", {}), ElementsAre(261, 262));
  const std::vector<TokenId> plain = tokenizer->Encode("<|end|><tool>", {.parse_special = false});
  EXPECT_EQ(plain.size(), 8u);
  EXPECT_EQ(plain.back(), 262u);
  EXPECT_EQ(tokenizer->Decode(plain, false), "<|end|><tool>");
  EXPECT_EQ(tokenizer->Decode(std::vector<TokenId>{261, 262}, false), "<tool>");
  EXPECT_EQ(tokenizer->Decode(std::vector<TokenId>{261, 262}, true), "<|end|><tool>");
  EXPECT_EQ(tokenizer->FindSpecial("<|end|>"), TokenId{261});
  EXPECT_EQ(tokenizer->FindSpecial("hello"), std::nullopt);
  EXPECT_THAT(tokenizer->end_tokens(), ElementsAre(261));
}

TEST(Tokenizer, NoMergeOfPlainTextGivesAControlToken) {
  SmallVocab vocab = ByteLevel();
  vocab.Merge("w w");
  vocab.data().token_types.back() = kControlType;
  const auto tokenizer = Make(std::move(vocab));
  EXPECT_EQ(tokenizer->Encode("ww", {.parse_special = false}).size(), 2u);

  SmallVocab pieces = SmallVocab::Pieces({"a", "b"});
  pieces.Token("ab", kControlType);
  pieces.data().add_space_prefix = false;
  EXPECT_EQ(Make(std::move(pieces))->Encode("ab", {.add_bos = false, .parse_special = false}).size(), 2u);
}

TEST(Tokenizer, AddsBosAndEosAsTheMetadataSay) {
  SmallVocab vocab = ByteLevel();
  vocab.data().bos = 0;
  vocab.data().eos = 1;
  EXPECT_THAT(Make(vocab)->Encode("a", {}), ElementsAre(97));
  EXPECT_FALSE(Make(vocab)->adds_bos());
  vocab.data().add_bos = true;
  vocab.data().add_eos = true;
  EXPECT_THAT(Make(vocab)->Encode("a", {}), ElementsAre(0, 97, 1));
  EXPECT_THAT(Make(vocab)->Encode("", {}), ElementsAre(0, 1));
  EXPECT_THAT(Make(vocab)->Encode("a", {.add_bos = false}), ElementsAre(97));
  EXPECT_TRUE(Make(vocab)->adds_bos());
}

TEST(Tokenizer, OverlongCharactersAreReadBeforeQwen2Composes) {
  const std::string overlong = "\xC1\xA1\u0304";  // an "a" in two bytes, and a macron
  const auto qwen2 = Make(ByteLevel("qwen2"));
  EXPECT_EQ(qwen2->Encode(overlong, {}), qwen2->Encode("\u0101", {}));
  const auto gpt2 = Make(ByteLevel());
  EXPECT_EQ(gpt2->Encode(overlong, {}), gpt2->Encode("a\u0304", {}));
}

TEST(Tokenizer, Llama3TakesAWholeWordThoughMergesDoNotReachIt) {
  SmallVocab vocab = SmallVocab::ByteLevel("llama-bpe", {"a b"});
  vocab.Token("abcab");
  const auto tokenizer = Make(std::move(vocab));
  EXPECT_THAT(tokenizer->Encode("abcab", {}), ElementsAre(257));
  SmallVocab other = SmallVocab::ByteLevel("gpt-2", {"a b"});
  other.Token("abcab");
  EXPECT_THAT(Make(std::move(other))->Encode("abcab", {}), ElementsAre(256, 99, 256));
}

TEST(Tokenizer, SentencePiecePutsASpaceBeforeTextAndDropsItAgain) {
  SmallVocab vocab = SmallVocab::Pieces({"▁a", "▁", "a"});
  const auto tokenizer = Make(std::move(vocab));
  EXPECT_TRUE(tokenizer->strips_first_space());
  EXPECT_THAT(tokenizer->Encode("a a", {}), ElementsAre(1, 259, 259));
  EXPECT_EQ(tokenizer->Decode(std::vector<TokenId>{1, 259, 259}, false), "a a");
  EXPECT_EQ(tokenizer->Decode(std::vector<TokenId>{1, 259, 259}, true), "<s> a a");
  // Once more after each special token.
  EXPECT_THAT(tokenizer->Encode("a</s>a", {.add_bos = false}), ElementsAre(259, 2, 259));
  EXPECT_THAT(tokenizer->Encode("", {.add_bos = false}), ElementsAre());
}

TEST(Tokenizer, SentencePieceFallsBackToBytes) {
  SmallVocab vocab = SmallVocab::Pieces({"a"});
  vocab.data().add_space_prefix = false;
  const auto tokenizer = Make(std::move(vocab));
  const std::vector<TokenId> ids = tokenizer->Encode("aé\xFF", {.add_bos = false});
  EXPECT_THAT(ids, ElementsAre(259, 3 + 0xC3, 3 + 0xA9, 3 + 0xFF));
  EXPECT_EQ(tokenizer->Decode(ids, false), "aé\xFF");
  EXPECT_EQ(tokenizer->Kind(3), TokenKind::kByte);
}

TEST(Tokenizer, NamesUnsupportedModelsAndPreTokenizersWithThoseSupported) {
  SmallVocab bert("bert");
  EXPECT_THAT(ErrorOf(bert), HasSubstr("tokenizer.ggml.model is \"bert\", which is not supported; supported are gpt2"));
  SmallVocab none("");
  EXPECT_THAT(ErrorOf(none), HasSubstr("tokenizer.ggml.model is missing"));
  SmallVocab falcon = ByteLevel("falcon");
  EXPECT_THAT(ErrorOf(falcon),
              HasSubstr("tokenizer.ggml.pre is \"falcon\", which is not supported; supported are gpt-2, smollm"));
  SmallVocab missing = ByteLevel("");
  EXPECT_THAT(ErrorOf(missing), HasSubstr("tokenizer.ggml.pre is missing"));
}

TEST(Tokenizer, NamesInconsistentMerges) {
  SmallVocab none = SmallVocab::ByteLevel("gpt-2", {});
  EXPECT_THAT(ErrorOf(none), HasSubstr("tokenizer.ggml.merges is missing or empty"));
  const auto error_with = [](std::string_view merge) {
    SmallVocab vocab = ByteLevel();
    vocab.data().merges.push_back(merge);
    return ErrorOf(vocab);
  };
  for (std::string_view merge : {"ab", " a", "a ", "", " ", "a b c"})
    EXPECT_THAT(error_with(merge), HasSubstr("is not two tokens with a space between them")) << merge;
  EXPECT_THAT(error_with("xyz a"), HasSubstr("tokenizer.ggml.merges[5] \"xyz a\" names \"xyz\", which is not in"));
  EXPECT_THAT(error_with("a z"), HasSubstr("names \"az\", which is not in"));
}

TEST(Tokenizer, NamesInconsistentPieces) {
  SmallVocab scores = SmallVocab::Pieces({"a"});
  scores.data().scores.pop_back();
  EXPECT_THAT(ErrorOf(scores), HasSubstr("tokenizer.ggml.scores has 259 entries, expected one per token: 260"));
  SmallVocab nan = SmallVocab::Pieces({"a"});
  nan.data().scores[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(ErrorOf(nan), HasSubstr("tokenizer.ggml.scores[7] is not a number"));
  SmallVocab bytes = SmallVocab::Pieces({"a"});
  bytes.data().tokens[3 + 0x10] = "x";
  bytes.data().token_types[3 + 0x10] = kNormalType;
  EXPECT_THAT(ErrorOf(bytes), HasSubstr("lacks the byte token <0x10>"));
  SmallVocab misspelled = SmallVocab::Pieces({"a"});
  misspelled.data().tokens[3 + 0x10] = "<0x1>";
  EXPECT_THAT(ErrorOf(misspelled), HasSubstr("token 19 is a byte token but spelled \"<0x1>\""));
  SmallVocab nothing("llama");
  nothing.Token("a");
  EXPECT_THAT(ErrorOf(nothing), HasSubstr("neither byte tokens nor an unknown token"));
  SmallVocab bos = SmallVocab::Pieces({"a"});
  bos.data().bos.reset();
  bos.data().add_bos = true;
  EXPECT_THAT(ErrorOf(bos), HasSubstr("add_bos_token is true, but tokenizer.ggml.bos_token_id is missing"));
}

TEST(Tokenizer, IdsOutOfRangeAreEmptyTokens) {
  const auto tokenizer = Make(ByteLevel());
  EXPECT_EQ(tokenizer->TokenBytes(1u << 30, true), "");
  EXPECT_EQ(tokenizer->Spelling(1u << 30), "");
  EXPECT_EQ(tokenizer->Kind(1u << 30), TokenKind::kUnused);
  EXPECT_EQ(tokenizer->Decode(std::vector<TokenId>{1u << 30, 97}, true), "a");
}

TEST(Tokenizer, IsMadeFromAModelFile) {
  SmallVocab vocab = ByteLevel();
  std::vector<std::string> tokens(vocab.data().tokens.begin(), vocab.data().tokens.end());
  std::vector<std::string> merges(vocab.data().merges.begin(), vocab.data().merges.end());
  const std::vector<int32_t> types(tokens.size(), 1);
  model::GgufBuilder builder;
  builder.SetString("general.architecture", "llama")
      .SetString("tokenizer.ggml.model", "gpt2")
      .SetString("tokenizer.ggml.pre", "gpt-2")
      .SetStrings("tokenizer.ggml.tokens", tokens)
      .SetStrings("tokenizer.ggml.merges", merges)
      .SetInts("tokenizer.ggml.token_type", types)
      .SetUInt("tokenizer.ggml.bos_token_id", 5)
      .SetBool("tokenizer.ggml.add_bos_token", true);
  std::unique_ptr<const Tokenizer> tokenizer;
  {
    const std::string bytes = builder.Build();
    const Result<model::GgufFile> file = model::GgufFile::Parse(std::as_bytes(std::span(bytes)), "small.gguf");
    ASSERT_TRUE(file.ok()) << file.status().message();
    Made made = Tokenizer::Create(*file);
    ASSERT_TRUE(made.ok()) << made.status().message();
    tokenizer = std::move(made).value();
  }  // the file is closed
  EXPECT_THAT(tokenizer->Encode("hello", {}), ElementsAre(5, 259));

  builder.Remove("tokenizer.ggml.merges").SetUInt("tokenizer.ggml.merges", 1);
  const std::string bytes = builder.Build();
  const Result<model::GgufFile> file = model::GgufFile::Parse(std::as_bytes(std::span(bytes)), "small.gguf");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_THAT(Tokenizer::Create(*file).status().message(), HasSubstr("tokenizer.ggml.merges"));
}

TEST(Tokenizer, AWordThatComesAgainGetsTheSameIds) {
  const auto tokenizer = Make(VocabOf(ReadRecorded("vocabulary_gpt-2.json")));
  std::string once, text;
  std::vector<TokenId> expected;
  SplitMix64 random(1);
  for (int i = 0; i < 3000; ++i) {
    const std::string word = " " + std::string(1 + random.Below(30), static_cast<char>('a' + random.Below(26)));
    const std::vector<TokenId> ids = tokenizer->Encode(word, {});
    expected.insert(expected.end(), ids.begin(), ids.end());
    text += word;
  }
  EXPECT_EQ(tokenizer->Encode(text, {}), expected);
}

class RecordedVocabulary : public ::testing::TestWithParam<const char*> {};

// Hugging Face's answers, and llama.cpp's where the text is not valid UTF-8.
TEST_P(RecordedVocabulary, GivesTheIdsOfTheOracles) {
  const nlohmann::json recorded = ReadRecorded(std::string("vocabulary_") + GetParam() + ".json");
  ASSERT_TRUE(recorded.contains("ids"));
  const auto tokenizer = Make(VocabOf(recorded));
  ASSERT_NE(tokenizer, nullptr);
  for (size_t i = 0; i < recorded["texts"].size(); ++i) {
    const auto text = recorded["texts"][i].get<std::string>();
    EXPECT_EQ(tokenizer->Encode(text, {.add_bos = false}), recorded["ids"][i].get<std::vector<TokenId>>()) << text;
  }
  for (size_t i = 0; i < recorded["invalid"].size(); ++i) {
    const auto hex = recorded["invalid"][i].get<std::string>();
    EXPECT_EQ(tokenizer->Encode(BytesOfHex(hex), {.add_bos = false}),
              recorded["invalid_ids"][i].get<std::vector<TokenId>>())
        << hex;
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecordedVocabulary,
                         ::testing::Values("gpt-2", "smollm", "qwen2", "llama-bpe", "llama2", "gemma", "no-bytes"));

// Text that the vocabulary can write comes back.
TEST_P(RecordedVocabulary, DecodesWhatItEncoded) {
  const std::string name = GetParam();
  if (name == "smollm" || name == "qwen2" || name == "no-bytes")
    return;  // these drop bytes, compose characters or have no token for some
  const nlohmann::json recorded = ReadRecorded("vocabulary_" + name + ".json");
  ASSERT_TRUE(recorded.contains("texts"));
  const auto tokenizer = Make(VocabOf(recorded));
  for (const nlohmann::json& recorded_text : recorded["texts"]) {
    const auto text = recorded_text.get<std::string>();
    if (text.find("\u2581") != std::string::npos || text.find('<') != std::string::npos) continue;
    EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text, {}), false), text);
  }
}

}  // namespace
}  // namespace cachalot::text
