#include "server/prompt.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "server/testing/fake_tokenizer.h"
#include "text/chat_template.h"

namespace cachalot::server {
namespace {

constexpr std::string_view kTemplate =
    "{{ bos_token }}{% for m in messages %}<|turn|>{{ m.role }}: {{ m.content }}<|end|>{% endfor %}"
    "{% if tools %}[{{ tools | length }} tools]{% endif %}{% if mood is defined %}({{ mood }}){% endif %}"
    "{% if messages[0].role == 'tool' %}{{ raise_exception('Begin with a user') }}{% endif %}"
    "{% if add_generation_prompt %}<|turn|>assistant: {% endif %}";

class PromptTest : public testing::Test {
 protected:
  ApiResult<PreparedRequest> Prepare(Endpoint endpoint, const std::string& body) {
    return PrepareRequest({.model = model_, .default_max_tokens = default_max_tokens_, .caps = caps_}, endpoint, body);
  }
  PreparedRequest Good(Endpoint endpoint, const std::string& body) {
    ApiResult<PreparedRequest> result = Prepare(endpoint, body);
    if (const auto* error = std::get_if<ApiError>(&result)) ADD_FAILURE() << body << ": " << error->message;
    return std::get<PreparedRequest>(std::move(result));
  }
  ApiError Bad(Endpoint endpoint, const std::string& body) {
    ApiResult<PreparedRequest> result = Prepare(endpoint, body);
    if (std::holds_alternative<PreparedRequest>(result)) ADD_FAILURE() << body << " was accepted";
    return std::get<ApiError>(result);
  }
  std::string Text(const PreparedPrompt& prompt) const { return tokenizer_.Decode(prompt.tokens, true); }

  FakeTokenizer tokenizer_{{.adds_bos = true}};
  text::ChatTemplate template_ = text::ChatTemplate::Parse(kTemplate).value();
  ServedModel model_{.names = {"tiny", "alias"},
                     .fingerprint = "fp",
                     .context_tokens = 100,
                     .pool_tokens = 1000,
                     .tokenizer = &tokenizer_,
                     .chat_template = &template_};
  uint32_t default_max_tokens_ = 0;
  Load caps_;
};

TEST_F(PromptTest, ChatIsRenderedByTheModelsTemplate) {
  const PreparedRequest request =
      Good(Endpoint::kChat, R"({"model":"alias","messages":[{"role":"user","content":"hi"}]})");
  ASSERT_EQ(request.prompts.size(), 1u);
  EXPECT_EQ(Text(request.prompts[0]), "<bos><|turn|>user: hi<|end|><|turn|>assistant: ");
  EXPECT_EQ(request.prompts[0].tokens[0], FakeTokenizer::kBos);
  EXPECT_EQ(request.prompts[0].tokens[1], FakeTokenizer::kTurn);
  EXPECT_EQ(request.end_tokens, (std::vector<TokenId>{FakeTokenizer::kEos, FakeTokenizer::kEnd}));
}

TEST_F(PromptTest, TheTemplateSeesToolsAndVariables) {
  const PreparedRequest request =
      Good(Endpoint::kChat,
           R"({"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function"}],"add_generation_prompt":false,
          "chat_template_kwargs":{"mood":"glad"}})");
  EXPECT_EQ(Text(request.prompts[0]), "<bos><|turn|>user: hi<|end|>[1 tools](glad)");
}

TEST_F(PromptTest, ATemplatesOwnErrorIsTold) {
  const ApiError error = Bad(Endpoint::kChat, R"({"messages":[{"role":"tool","content":"hi"}]})");
  EXPECT_EQ(error.status, 400);
  EXPECT_EQ(error.code, "chat_template_error");
  EXPECT_NE(error.message.find("Begin with a user"), std::string::npos) << error.message;
}

TEST_F(PromptTest, ABaseModelRefusesChatAndSaysWhatToDo) {
  model_.chat_template = nullptr;
  const ApiError error = Bad(Endpoint::kChat, R"({"messages":[{"role":"user","content":"hi"}]})");
  EXPECT_EQ(error.status, 400);
  EXPECT_EQ(error.code, "no_chat_template");
  EXPECT_EQ(error.message,
            "the model tiny has no chat template, so it does not answer chat requests; use /v1/completions, or start "
            "the server with --chat-template");
  Good(Endpoint::kCompletion, R"({"prompt":"hi"})");
}

TEST_F(PromptTest, CompletionsGetTheBosThatTheModelWants) {
  const PreparedRequest request = Good(Endpoint::kCompletion, R"({"prompt":"ab","echo":true})");
  EXPECT_EQ(request.prompts[0].tokens, (std::vector<TokenId>{FakeTokenizer::kBos, 'a', 'b'}));
  EXPECT_EQ(request.prompts[0].text, "ab");
  EXPECT_TRUE(request.prompts[0].added_bos);
  const PreparedRequest ids = Good(Endpoint::kCompletion, R"({"prompt":[[256,97],[98]],"echo":true})");
  ASSERT_EQ(ids.prompts.size(), 2u);
  EXPECT_EQ(ids.prompts[0].tokens, (std::vector<TokenId>{FakeTokenizer::kBos, 'a'}));
  EXPECT_EQ(ids.prompts[0].text, "<bos>a");
  EXPECT_FALSE(ids.prompts[0].added_bos);
}

TEST_F(PromptTest, MaxTokensDefaultsToWhatIsLeft) {
  const std::string chat = R"({"messages":[{"role":"user","content":"hi"}],"add_generation_prompt":false})";
  const auto chat_default = [&] { return Good(Endpoint::kChat, chat).prompts[0].max_tokens; };
  EXPECT_EQ(chat_default(), 100u - 11u);  // <bos><|turn|>user: hi<|end|>
  default_max_tokens_ = 20;
  EXPECT_EQ(chat_default(), 20u);
  caps_.context_tokens = 24;
  EXPECT_EQ(chat_default(), 13u);
  caps_.output_tokens = 9;
  EXPECT_EQ(chat_default(), 9u);
  EXPECT_EQ(Good(Endpoint::kChat, chat.substr(0, chat.size() - 1) + R"(,"n":2})").prompts[0].max_tokens, 4u);
  caps_ = {};
  model_.pool_tokens = 15;
  EXPECT_EQ(chat_default(), 4u);
  EXPECT_EQ(Good(Endpoint::kChat, chat.substr(0, chat.size() - 1) + R"(,"n":2})").prompts[0].max_tokens, 2u);
  EXPECT_EQ(Good(Endpoint::kCompletion, R"({"prompt":[97]})").prompts[0].max_tokens, 14u);
  model_.pool_tokens = 1000;
  EXPECT_EQ(Good(Endpoint::kCompletion, R"({"prompt":[97]})").prompts[0].max_tokens, 16u);
  EXPECT_EQ(Good(Endpoint::kCompletion, R"({"prompt":[97],"max_tokens":3})").prompts[0].max_tokens, 3u);
}

TEST_F(PromptTest, TheContextIsExactAndItsErrorHasNumbers) {
  const auto body = [](int prompt, int max_tokens) {
    std::string ids = "97";
    for (int i = 1; i < prompt; ++i) ids += ",97";
    return fmt::format(R"({{"prompt":[{}],"max_tokens":{}}})", ids, max_tokens);
  };
  Good(Endpoint::kCompletion, body(60, 40));
  Good(Endpoint::kCompletion, body(100, 0));
  const ApiError error = Bad(Endpoint::kCompletion, body(60, 41));
  EXPECT_EQ(error.status, 400);
  EXPECT_EQ(error.code, "context_length_exceeded");
  EXPECT_EQ(error.message,
            "the model's context is 100 tokens; this request needs 101: 60 of the prompt and 41 of the answer");
  EXPECT_EQ(Bad(Endpoint::kCompletion, body(101, 0)).code, "context_length_exceeded");
  EXPECT_EQ(Bad(Endpoint::kCompletion, R"({"prompt":")" + std::string(100, 'a') + "\"}").code,
            "context_length_exceeded");
}

TEST_F(PromptTest, ATextThatIsFarTooLongIsRefusedUnread) {
  model_.longest_token_bytes = 10;
  const ApiError error = Bad(Endpoint::kCompletion, R"({"prompt":")" + std::string(4 * 10 * 101, 'x') + R"("})");
  EXPECT_EQ(error.code, "context_length_exceeded");
  EXPECT_EQ(error.message, "the model's context is 100 tokens; the prompt's 4040 bytes are at least 101");
}

TEST_F(PromptTest, UnknownModelsAreNotFound) {
  const ApiError error = Bad(Endpoint::kCompletion, R"({"model":"gpt-4o","prompt":"x"})");
  EXPECT_EQ(error.status, 404);
  EXPECT_EQ(error.code, "model_not_found");
  EXPECT_EQ(error.param, "model");
  EXPECT_EQ(error.message, "the model \"gpt-4o\" does not exist; this server has tiny");
}

TEST_F(PromptTest, RangesOfSamplingAreChecked) {
  const auto check = [&](const std::string& field, const std::string& param) {
    const ApiError error = Bad(Endpoint::kCompletion, R"({"prompt":"x",)" + field + "}");
    EXPECT_EQ(error.status, 400);
    EXPECT_EQ(error.param, param) << field;
    EXPECT_EQ(error.message.substr(0, param.size()), param) << error.message;
  };
  check(R"("temperature":-0.1)", "temperature");
  check(R"("temperature":1e300)", "temperature");
  check(R"("top_p":0)", "top_p");
  check(R"("top_p":1.01)", "top_p");
  check(R"("min_p":-1)", "min_p");
  check(R"("repetition_penalty":0)", "repetition_penalty");
  check(R"("presence_penalty":2.5)", "presence_penalty");
  check(R"("frequency_penalty":-3)", "frequency_penalty");
  check(R"("logit_bias":{"260":1})", "logit_bias");
  check(R"("logit_bias":{"5":101})", "logit_bias");
  check(R"("logit_bias":{"5":1,"05":2})", "logit_bias");
}

TEST_F(PromptTest, TokensOutsideTheVocabularyAreNamed) {
  EXPECT_EQ(Bad(Endpoint::kCompletion, R"({"prompt":[1,260]})").message,
            "prompt[1]: token 260 is outside the vocabulary of 260 tokens");
  EXPECT_EQ(Bad(Endpoint::kCompletion, R"({"prompt":[[1],[2,300]]})").param, "prompt[1][1]");
  EXPECT_EQ(Bad(Endpoint::kCompletion, R"({"prompt":"x","stop_token_ids":[260]})").param, "stop_token_ids[0]");
}

TEST_F(PromptTest, EndTokensCanBeAddedAndIgnored) {
  EXPECT_EQ(Good(Endpoint::kCompletion, R"({"prompt":"x","stop_token_ids":[10,10,3]})").end_tokens,
            (std::vector<TokenId>{3, 10, FakeTokenizer::kEos, FakeTokenizer::kEnd}));
  EXPECT_TRUE(Good(Endpoint::kCompletion, R"({"prompt":"x","ignore_eos":true})").end_tokens.empty());
}

TEST_F(PromptTest, BodiesThatAreNoJsonAreRefusedWithTheReason) {
  EXPECT_EQ(Bad(Endpoint::kChat, "").message, "the body is empty; expected a JSON object");
  for (const std::string body :
       {"{", "nope", R"({"prompt":"x"} trailing)", R"({"prompt":"x","prompt":"y"})", "{\"prompt\":\"\xff\"}",
        R"({"prompt":"\ud800"})", R"({"temperature":NaN})", R"({"temperature":1e999})"}) {
    const ApiError error = Bad(Endpoint::kCompletion, body);
    EXPECT_EQ(error.status, 400) << body;
    EXPECT_TRUE(error.message.starts_with("invalid JSON")) << error.message;
  }
  EXPECT_EQ(Bad(Endpoint::kCompletion, std::string(500, '[') + std::string(500, ']')).status, 400);
}

TEST_F(PromptTest, BodiesOfTooManyValuesAreRefusedBeforeTheyFillTheMemory) {
  std::string body = R"({"prompt":[1)";
  for (int i = 0; i < 2'000'001; ++i) body += ",1";
  EXPECT_EQ(Bad(Endpoint::kCompletion, body + "]}").message, "the body has more than 2000000 values");
}

TEST_F(PromptTest, EchoedLogprobsAreBounded) {
  model_.context_tokens = 10'000'000;
  std::string ids = "97";
  for (int i = 1; i < 100'000; ++i) ids += ",97";
  const auto body = [&](const std::string& more) { return R"({"prompt":[)" + ids + R"(],"echo":true,)" + more + "}"; };
  Good(Endpoint::kCompletion, body(R"("logprobs":19)"));
  EXPECT_EQ(Bad(Endpoint::kCompletion, body(R"("logprobs":20)")).param, "echo");
  EXPECT_EQ(Bad(Endpoint::kCompletion, body(R"("logprobs":5,"n":4)")).param, "echo");
}

}  // namespace
}  // namespace cachalot::server
