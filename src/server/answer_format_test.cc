#include "server/answer_format.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "server/testing/fake_tokenizer.h"
#include "server/testing/test_client.h"

namespace cachalot::server {
namespace {

using nlohmann::json;

class AnswerFormatTest : public testing::Test {
 protected:
  AnswerFormat Make(Endpoint endpoint, bool usage = false) {
    return AnswerFormat({endpoint, "id-1", "m", "fp", 123, usage}, tokenizer_);
  }
  static json OnlyEvent(const std::string& sse) {
    const std::vector<std::string> events = EventsOf(sse);
    EXPECT_EQ(events.size(), 1u) << sse;
    EXPECT_TRUE(sse.ends_with("\n\n"));
    return json::parse(events.at(0));
  }

  FakeTokenizer tokenizer_;
};

TEST_F(AnswerFormatTest, ChatChunks) {
  const AnswerFormat format = Make(Endpoint::kChat, true);
  std::string role, text, finish, usage;
  format.AppendRoleChunk(&role, 2);
  format.AppendTextChunk(&text, {.index = 2, .text = "h\"\n\xC3\xA9"});
  format.AppendFinishChunk(&finish, {.index = 2, .finish_reason = "length"});
  format.AppendUsageChunk(&usage, {.prompt_tokens = 3, .cached_tokens = 1, .output_tokens = 4});
  json expected = json::parse(
      R"({"id":"id-1","object":"chat.completion.chunk","created":123,"model":"m","system_fingerprint":"fp",
      "choices":[{"index":2,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],
      "usage":null})");
  EXPECT_EQ(OnlyEvent(role), expected);
  expected["choices"][0]["delta"] = {{"content", "h\"\n\xC3\xA9"}};
  EXPECT_EQ(OnlyEvent(text), expected);
  expected["choices"][0]["delta"] = json::object();
  expected["choices"][0]["finish_reason"] = "length";
  EXPECT_EQ(OnlyEvent(finish), expected);
  expected["choices"] = json::array();
  expected["usage"] = json::parse(
      R"({"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,"prompt_tokens_details":{"cached_tokens":1}})");
  EXPECT_EQ(OnlyEvent(usage), expected);
}

TEST_F(AnswerFormatTest, CompletionChunks) {
  const AnswerFormat format = Make(Endpoint::kCompletion);
  std::string text;
  format.AppendTextChunk(&text, {.index = 0, .text = "x"});
  EXPECT_EQ(OnlyEvent(text), json::parse(R"({"id":"id-1","object":"text_completion","created":123,"model":"m",
      "system_fingerprint":"fp","choices":[{"index":0,"text":"x","logprobs":null,"finish_reason":null}]})"));
}

TEST_F(AnswerFormatTest, WholeAnswers) {
  const Usage usage{.prompt_tokens = 1, .cached_tokens = 0, .output_tokens = 2};
  const std::vector<ChoicePart> choices = {{.index = 0, .text = "a", .finish_reason = "stop"},
                                           {.index = 1, .text = "b", .finish_reason = "length"}};
  const json chat = json::parse(Make(Endpoint::kChat).WholeAnswer(choices, usage));
  EXPECT_EQ(chat["object"], "chat.completion");
  EXPECT_EQ(chat["choices"][1], json::parse(R"({"index":1,"message":{"role":"assistant","content":"b","refusal":null},
      "logprobs":null,"finish_reason":"length"})"));
  EXPECT_EQ(chat["usage"]["total_tokens"], 3);
  const json completion = json::parse(Make(Endpoint::kCompletion).WholeAnswer(choices, usage));
  EXPECT_EQ(completion["object"], "text_completion");
  EXPECT_EQ(completion["choices"][0], json::parse(R"({"index":0,"text":"a","logprobs":null,"finish_reason":"stop"})"));
}

TEST_F(AnswerFormatTest, ChatLogprobsTellBytes) {
  const AnswerFormat format = Make(Endpoint::kChat);
  LogprobsText logprobs;
  const SampledToken sampled{.token = 'a', .logprob = -0.5f, .top = {{'b', -0.25f}, {0xC3, -1e30f}}};
  format.AppendLogprobs(&logprobs, {sampled, 0}, 2);
  format.AppendLogprobs(&logprobs, {{.token = FakeTokenizer::kTurn, .logprob = -1}, 1}, 0);
  std::string chunk;
  format.AppendTextChunk(&chunk, {.text = "a", .logprobs = &logprobs});
  EXPECT_EQ(OnlyEvent(chunk)["choices"][0]["logprobs"], json::parse(R"({"content":[
      {"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[
        {"token":"b","logprob":-0.25,"bytes":[98]},{"token":"\ufffd","logprob":-9999.0,"bytes":[195]}]},
      {"token":"<|turn|>","logprob":-1.0,"bytes":[60,124,116,117,114,110,124,62],"top_logprobs":[]}],
      "refusal":null})"));
}

TEST_F(AnswerFormatTest, CompletionLogprobsAlwaysTellTheTokenItself) {
  const AnswerFormat format = Make(Endpoint::kCompletion);
  LogprobsText logprobs;
  format.AppendNoLogprob(&logprobs, {{.token = 'p'}, 0});
  format.AppendLogprobs(&logprobs, {{.token = 'a', .logprob = -0.5f, .top = {{'b', -0.25f}}}, 1}, 1);
  format.AppendLogprobs(&logprobs, {{.token = 0xC3, .logprob = -0.5f, .top = {{0xC3, -0.5f}}}, 2}, 1);
  const json whole = json::parse(format.WholeAnswer({{.text = "pa", .logprobs = &logprobs}}, {}));
  EXPECT_EQ(whole["choices"][0]["logprobs"], json::parse(R"({"tokens":["p","a","bytes:\\xc3"],
      "token_logprobs":[null,-0.5,-0.5],"top_logprobs":[null,{"b":-0.25,"a":-0.5},{"bytes:\\xc3":-0.5}],
      "text_offset":[0,1,2]})"));
}

TEST_F(AnswerFormatTest, InfiniteLogprobsAreVeryLowNumbers) {
  const float infinite = -std::numeric_limits<float>::infinity();
  const SampledToken sampled{.token = 'a', .logprob = infinite, .top = {{'b', infinite}}};
  for (const Endpoint endpoint : {Endpoint::kChat, Endpoint::kCompletion}) {
    LogprobsText logprobs;
    Make(endpoint).AppendLogprobs(&logprobs, {sampled, 0}, 1);
    const std::string answer = Make(endpoint).WholeAnswer({{.text = "a", .logprobs = &logprobs}}, {});
    const json told = json::parse(answer)["choices"][0]["logprobs"];
    if (endpoint == Endpoint::kChat) {
      EXPECT_EQ(told["content"][0]["logprob"], -9999.0);
      EXPECT_EQ(told["content"][0]["top_logprobs"][0]["logprob"], -9999.0);
    } else {
      EXPECT_EQ(told["token_logprobs"], json::parse("[-9999.0]"));
      EXPECT_EQ(told["top_logprobs"], json::parse(R"([{"b":-9999.0,"a":-9999.0}])"));
    }
  }
}

}  // namespace
}  // namespace cachalot::server
