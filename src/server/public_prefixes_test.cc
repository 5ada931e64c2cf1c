#include "server/public_prefixes.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/testing/fake_tokenizer.h"
#include "text/chat_template.h"

namespace cachalot::server {
namespace {

// Tools come first, as some templates have it.
constexpr std::string_view kTemplate =
    "{{ bos_token }}{% if tools %}[{{ tools[0].name }}]{% endif %}"
    "{% for m in messages %}<|turn|>{{ m.role }}: {{ m.content }}<|end|>{% endfor %}";
constexpr std::string_view kUserFirst =
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}{{ messages[0].content }}";

class PublicPrefixesTest : public testing::Test {
 protected:
  uint64_t Common(const std::string& prompt, const std::vector<std::string>& texts, bool add_bos = false) {
    const PublicPrefixes prefixes({.names = {"m"}, .tokenizer = &tokenizer_, .chat_template = &template_}, texts, 0);
    return prefixes.CommonTokens(tokenizer_.Encode(prompt, {.add_bos = add_bos}));
  }

  FakeTokenizer tokenizer_{{.adds_bos = true}};
  text::ChatTemplate template_ = text::ChatTemplate::Parse(kTemplate).value();
};

TEST_F(PublicPrefixesTest, WithoutDeclaredTextsNothingIsPublic) {
  EXPECT_EQ(Common("abc", {}), 0u);
  EXPECT_EQ(PublicPrefixes().CommonTokens(std::vector<TokenId>{1, 2}), 0u);
}

TEST_F(PublicPrefixesTest, ACompletionSharesWhatIsEqualFromItsBeginning) {
  EXPECT_EQ(Common("Be kind. Hello", {"Be kind."}, true), 1u + 8);
  EXPECT_EQ(Common("Be kind. Hello", {"Be kind."}, false), 8u);
  EXPECT_EQ(Common("Be bad.", {"Be kind."}, true), 1u + 3);
  EXPECT_EQ(Common("Be", {"Be kind."}, true), 1u + 2);
  EXPECT_EQ(Common("So: Be kind.", {"Be kind."}, true), 1u);  // BOS alone
  EXPECT_EQ(Common("Be kind. Hello", {"x", "Be", "Be kind. H", "Be kind."}, true), 1u + 10);
}

TEST_F(PublicPrefixesTest, AChatSharesItsSystemMessageUpToTheUsersText) {
  const std::string shared = "<bos><|turn|>system: Be kind.<|end|><|turn|>user: ";
  const uint64_t tokens = tokenizer_.Encode(shared, {.add_bos = false}).size();
  EXPECT_EQ(Common(shared + "secret<|end|>", {"Be kind."}), tokens);
  EXPECT_EQ(Common(shared + "A<|end|>", {"Be kind.\r\n"}), tokens);  // not one more for the text that was tried
  const std::string longer = "<bos><|turn|>system: Be kind. My name is";
  EXPECT_EQ(Common(longer, {"Be kind."}),
            tokenizer_.Encode("<bos><|turn|>system: Be kind.", {.add_bos = false}).size());
}

TEST_F(PublicPrefixesTest, WhatAClientPutsInFrontIsNotPublic) {
  EXPECT_EQ(Common("<bos>[my tool]<|turn|>system: Be kind.<|end|>", {"Be kind."}), 1u);
}

TEST_F(PublicPrefixesTest, ATemplateWithoutSystemMessagesLeavesTheTextAlone) {
  template_ = text::ChatTemplate::Parse(kUserFirst).value();
  EXPECT_EQ(Common("Be kind. Hello", {"Be kind."}), 8u);
  EXPECT_EQ(Common("A", {"Be kind."}), 0u);
}

}  // namespace
}  // namespace cachalot::server
