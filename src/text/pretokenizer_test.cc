#include "text/pretokenizer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "text/testing/recorded.h"

namespace cachalot::text {
namespace {

std::vector<std::string> PiecesOf(PreTokenizer kind, std::string_view text) {
  std::vector<std::string> pieces;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = PreTokenEnd(kind, text, begin);
    pieces.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

using Pieces = std::vector<std::string>;

TEST(PreTokenizer, Gpt2KeepsASpaceWithTheWordAfterIt) {
  EXPECT_EQ(PiecesOf(PreTokenizer::kGpt2, "I'm  here at 10:30!!"),
            (Pieces{"I", "'m", " ", " here", " at", " 10", ":", "30", "!!"}));
  EXPECT_EQ(PiecesOf(PreTokenizer::kGpt2, "WE'RE"), (Pieces{"WE", "'", "RE"}));
}

TEST(PreTokenizer, SmollmCutsOutEveryDigitFirst) {
  EXPECT_EQ(PiecesOf(PreTokenizer::kSmollm, "at 10, x"), (Pieces{"at", " ", "1", "0", ",", " x"}));
  // The spaces before a digit end their text, so none of them is left for the digit.
  EXPECT_EQ(PiecesOf(PreTokenizer::kSmollm, "a   1"), (Pieces{"a", "   ", "1"}));
}

TEST(PreTokenizer, Qwen2TakesOneDigitAndLlama3UpToThree) {
  EXPECT_EQ(PiecesOf(PreTokenizer::kQwen2, "a 1234"), (Pieces{"a", " ", "1", "2", "3", "4"}));
  EXPECT_EQ(PiecesOf(PreTokenizer::kLlama3, "a 1234"), (Pieces{"a", " ", "123", "4"}));
}

TEST(PreTokenizer, Llama3KeepsLineBreaksWithWhatIsBefore) {
  EXPECT_EQ(PiecesOf(PreTokenizer::kLlama3, "end!\r\n\n  \n x"), (Pieces{"end", "!\r\n\n", "  \n", " x"}));
  EXPECT_EQ(PiecesOf(PreTokenizer::kLlama3, "(word) WE'RE"), (Pieces{"(word", ")", " WE", "'RE"}));
}

TEST(PreTokenizer, FindsSupportedNamesOnly) {
  EXPECT_EQ(FindPreTokenizer("llama-bpe"), PreTokenizer::kLlama3);
  EXPECT_EQ(FindPreTokenizer("smollm"), PreTokenizer::kSmollm);
  EXPECT_EQ(FindPreTokenizer("default"), std::nullopt);
  EXPECT_EQ(FindPreTokenizer(""), std::nullopt);
  EXPECT_NE(SupportedPreTokenizers().find("qwen2"), std::string::npos);
}

TEST(PreTokenizer, EndsAreThoseOfThePublishedRegularExpressions) {
  const nlohmann::json recorded = ReadRecorded("pretokenizer.json");
  ASSERT_TRUE(recorded.contains("ends"));
  for (const auto& [name, ends_of_texts] : recorded["ends"].items()) {
    const std::optional<PreTokenizer> kind = FindPreTokenizer(name);
    ASSERT_TRUE(kind.has_value()) << name;
    for (size_t i = 0; i < ends_of_texts.size(); ++i) {
      const auto text = recorded["texts"][i].get<std::string>();
      std::vector<size_t> ends;
      while (ends.empty() ? !text.empty() : ends.back() < text.size())
        ends.push_back(PreTokenEnd(*kind, text, ends.empty() ? 0 : ends.back()));
      EXPECT_EQ(ends, ends_of_texts[i].get<std::vector<size_t>>()) << name << ": " << text;
    }
  }
}

TEST(PreTokenizer, PiecesTileAnyBytes) {
  SplitMix64 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::string text(random.Below(40), '\0');
    for (char& c : text)
      c = static_cast<char>(random.Below(3) == 0 ? random.Below(256)
                                                 : std::string_view(" '\n1aS\xE2\x80\xC3")[random.Below(9)]);
    for (PreTokenizer kind :
         {PreTokenizer::kGpt2, PreTokenizer::kSmollm, PreTokenizer::kQwen2, PreTokenizer::kLlama3}) {
      std::string joined;
      for (const std::string& piece : PiecesOf(kind, text)) {
        ASSERT_FALSE(piece.empty());
        joined += piece;
      }
      ASSERT_EQ(joined, text);
    }
  }
}

}  // namespace
}  // namespace cachalot::text
