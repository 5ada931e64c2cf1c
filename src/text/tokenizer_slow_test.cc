#include <gtest/gtest.h>

#include <string>

#include "text/testing/recorded.h"
#include "text/testing/small_vocab.h"
#include "text/tokenizer.h"

namespace cachalot::text {
namespace {

// A quadratic tokenizer would be at one of these for hours.
TEST(TokenizerSlow, AMegabyteOfAnyOneThingIsTokenized) {
  for (const char* name : {"smollm", "qwen2", "llama2", "gemma"}) {
    SmallVocab vocab = VocabOf(ReadRecorded(std::string("vocabulary_") + name + ".json"));
    const auto tokenizer = Tokenizer::Create(vocab.data());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    for (std::string_view unit : {"a", " ", "\n", "\U0001F600", "ab", "!", "0", "\u00e9", "e\u0301", "\u4e2d", "\u0301",
                                  "'", "<", "<|im_start", "\xFF", "\xE2\x82", " a", "\r\n"}) {
      std::string text;
      while (text.size() < (1u << 20)) text += unit;
      const std::vector<TokenId> ids = (*tokenizer)->Encode(text, {.add_bos = false});
      EXPECT_FALSE(ids.empty()) << name << " " << unit;
    }
  }
}

}  // namespace
}  // namespace cachalot::text
