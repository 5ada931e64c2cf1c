#include "server/api_request.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace cachalot::server {
namespace {

Json Parse(const std::string& text) {
  Result<Json> json = ParseJson(text);
  EXPECT_TRUE(json.ok()) << text;
  return json.ok() ? *json : Json();
}

ApiRequest Chat(const std::string& more) {
  const ApiResult<ApiRequest> result =
      ParseChatRequest(Parse(R"({"messages":[{"role":"user","content":"hi"}])" + more + "}"));
  if (const auto* error = std::get_if<ApiError>(&result)) ADD_FAILURE() << error->message;
  return std::get<ApiRequest>(result);
}

ApiRequest Completion(const std::string& fields) {
  const ApiResult<ApiRequest> result = ParseCompletionRequest(Parse("{" + fields + "}"));
  if (const auto* error = std::get_if<ApiError>(&result)) ADD_FAILURE() << error->message;
  return std::get<ApiRequest>(result);
}

struct BadField {
  std::string fields;
  std::string message;
  std::string param;
};

TEST(ApiRequest, DefaultsAreThoseOfTheApi) {
  const ApiRequest request = Chat("");
  EXPECT_EQ(request.n, 1u);
  EXPECT_FALSE(request.stream);
  EXPECT_FALSE(request.max_tokens.has_value());
  EXPECT_EQ(request.sampling.temperature, 1.0f);
  EXPECT_EQ(request.sampling.top_p, 1.0f);
  EXPECT_EQ(request.sampling.top_k, 0u);
  EXPECT_EQ(request.sampling.logprobs, -1);
  EXPECT_FALSE(request.has_seed);
  EXPECT_TRUE(request.add_generation_prompt);
}

TEST(ApiRequest, ReadsEveryCommonField) {
  const ApiRequest request = Chat(
      R"(,"model":"m","n":3,"stream":true,"stream_options":{"include_usage":true},"temperature":0.5,"top_p":0.9,
      "top_k":40,"min_p":0.1,"repetition_penalty":1.1,"presence_penalty":-1,"frequency_penalty":2,"seed":-7,
      "logit_bias":{"5":-100,"2":1.5},"stop":["a","b"],"stop_token_ids":[9],"ignore_eos":true,"user":"u",
      "max_completion_tokens":12,"unknown_field":{"a":[1]},"metadata":{"x":"y"},"store":false)");
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.n, 3u);
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.include_usage);
  EXPECT_EQ(request.sampling.temperature, 0.5f);
  EXPECT_EQ(request.sampling.top_p, 0.9f);
  EXPECT_EQ(request.sampling.top_k, 40u);
  EXPECT_EQ(request.sampling.min_p, 0.1f);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.1f);
  EXPECT_EQ(request.sampling.presence_penalty, -1.0f);
  EXPECT_EQ(request.sampling.frequency_penalty, 2.0f);
  EXPECT_TRUE(request.has_seed);
  EXPECT_EQ(static_cast<int64_t>(request.sampling.seed), -7);
  EXPECT_EQ(request.sampling.logit_bias, (std::vector<std::pair<TokenId, float>>{{2, 1.5f}, {5, -100.0f}}));
  EXPECT_EQ(request.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request.stop_token_ids, (std::vector<TokenId>{9}));
  EXPECT_TRUE(request.ignore_eos);
  EXPECT_EQ(request.max_tokens, 12u);
}

TEST(ApiRequest, NullMeansAbsent) {
  const ApiRequest request = Chat(
      R"(,"max_tokens":null,"temperature":null,"stop":null,"logprobs":null,"tools":null,"tool_choice":null,"seed":null,
      "response_format":null,"stream_options":null,"logit_bias":null,"n":null,"user":null,"audio":null)");
  EXPECT_FALSE(request.max_tokens.has_value());
  EXPECT_EQ(request.sampling.temperature, 1.0f);
  EXPECT_FALSE(request.has_seed);
}

TEST(ApiRequest, NamesThePathOfWhatIsWrong) {
  const std::vector<BadField> cases = {
      {R"("temperature":"NaN")", "temperature: expected number, got string", "temperature"},
      {R"("n":0)", "n: is 0; it must be between 1 and 128", "n"},
      {R"("n":1.5)", "n: expected integer, got number", "n"},
      {R"("max_tokens":-1)", "max_tokens: is -1; it must be between 1 and 2147483647", "max_tokens"},
      {R"("max_tokens":0)", "max_tokens: is 0; it must be between 1 and 2147483647", "max_tokens"},
      {R"("max_tokens":99999999999999)", "max_tokens: is 99999999999999; it must be between 1 and 2147483647",
       "max_tokens"},
      {R"("max_tokens":1e30)", "max_tokens: expected integer, got number", "max_tokens"},
      {R"("stream":"yes")", "stream: expected boolean, got string", "stream"},
      {R"("stop":5)", "stop: expected string or array, got integer", "stop"},
      {R"("stop":["a",5])", "stop[1]: expected string, got integer", "stop[1]"},
      {R"("stop":["a",""])", "stop[1]: is empty", "stop[1]"},
      {R"("stop":"")", "stop: is empty", "stop"},
      {R"("stop_token_ids":[1,-2])", "stop_token_ids[1]: -2 is no token id", "stop_token_ids[1]"},
      {R"("logit_bias":[1])", "logit_bias: expected object, got array", "logit_bias"},
      {R"("logit_bias":{"x":1})", "logit_bias: key \"x\" is no token id", "logit_bias"},
      {R"("logit_bias":{"-1":1})", "logit_bias: key \"-1\" is no token id", "logit_bias"},
      {R"("logit_bias":{"7":"a"})", "logit_bias.7: expected number, got string", "logit_bias.7"},
      {R"("stream":true,"stream_options":{"include_usage":1})",
       "stream_options.include_usage: expected boolean, got integer", "stream_options.include_usage"},
      {R"("stream_options":{"include_usage":true})", "stream_options: is only allowed with \"stream\": true",
       "stream_options"},
      {R"("logprobs":2)", "logprobs: expected boolean, got integer", "logprobs"},
      {R"("logprobs":true,"top_logprobs":21)", "top_logprobs: is 21; it must be between 0 and 20", "top_logprobs"},
      {R"("top_logprobs":3)", "top_logprobs: is only allowed with \"logprobs\": true", "top_logprobs"},
      {R"("tools":{})", "tools: expected array, got object", "tools"},
      {R"("tools":[1])", "tools[0]: expected object, got integer", "tools[0]"},
      {R"("tool_choice":"required")", "tool_choice: only \"none\" and \"auto\" are supported by this server",
       "tool_choice"},
      {R"("response_format":{"type":"json_object"})",
       "response_format.type: \"json_object\" is not supported by this server; only \"text\"", "response_format.type"},
      {R"("response_format":5)", "response_format.type: expected string", "response_format.type"},
      {R"("audio":{"voice":"x"})", "audio: is not supported by this server", "audio"},
      {R"("modalities":["audio"])", "modalities: only [\"text\"] is supported by this server", "modalities"},
      {R"("functions":[{"name":"f"}])", "functions: is not supported by this server", "functions"},
      {R"("min_tokens":3)", "min_tokens: is not supported by this server", "min_tokens"},
      {R"("skip_special_tokens":false)", "skip_special_tokens: only true is supported by this server",
       "skip_special_tokens"},
      {R"("echo":true)", "echo: is only supported by /v1/completions", "echo"},
      {R"("model":7)", "model: expected string, got integer", "model"},
      {R"("chat_template_kwargs":[])", "chat_template_kwargs: expected object, got array", "chat_template_kwargs"},
  };
  for (const BadField& bad : cases) {
    const ApiResult<ApiRequest> result =
        ParseChatRequest(Parse(R"({"messages":[{"role":"user","content":"hi"}],)" + bad.fields + "}"));
    const auto* error = std::get_if<ApiError>(&result);
    ASSERT_NE(error, nullptr) << bad.fields;
    EXPECT_EQ(error->message, bad.message) << bad.fields;
    EXPECT_EQ(error->param, bad.param) << bad.fields;
    EXPECT_EQ(error->status, 400);
    EXPECT_EQ(error->type, "invalid_request_error");
  }
}

TEST(ApiRequest, FieldsThatAskForNothingArePermitted) {
  Chat(R"(,"functions":[],"function_call":"none","audio":null,"min_tokens":0,"response_format":{"type":"text"},
       "modalities":["text"],"use_beam_search":false,"grammar":"","skip_special_tokens":true,"echo":false)");
}

TEST(ApiRequest, StopStringsAreLimitedInNumberAndLength) {
  std::string many = R"("prompt":"x","stop":["s0")";
  for (size_t i = 1; i < kMaxStopStrings; ++i) many += ",\"s" + std::to_string(i) + "\"";
  EXPECT_EQ(Completion(many + "]").stop.size(), kMaxStopStrings);
  const auto refused = [](const std::string& fields) {
    const ApiResult<ApiRequest> result = ParseCompletionRequest(Parse("{" + fields + "}"));
    return std::holds_alternative<ApiError>(result) ? std::get<ApiError>(result).message : "";
  };
  EXPECT_EQ(refused(many + R"(,"more"])"), "stop: has 65 strings; at most 64 are allowed");
  EXPECT_EQ(refused(R"("prompt":"x","stop":")" + std::string(1025, 'x') + "\""),
            "stop: has 1025 bytes; at most 1024 are allowed");
}

TEST(ApiRequest, ReadsEveryFormOfAPrompt) {
  using Ids = std::vector<TokenId>;
  EXPECT_EQ(Completion(R"("prompt":"abc")").prompts, (std::vector<PromptSource>{"abc"}));
  EXPECT_EQ(Completion(R"("prompt":["a","b"])").prompts, (std::vector<PromptSource>{"a", "b"}));
  EXPECT_EQ(Completion(R"("prompt":[1,2,3])").prompts, (std::vector<PromptSource>{Ids{1, 2, 3}}));
  EXPECT_EQ(Completion(R"("prompt":[[1],[2,3]])").prompts, (std::vector<PromptSource>{Ids{1}, Ids{2, 3}}));
  EXPECT_EQ(Completion(R"("prompt":["a",[7]])").prompts, (std::vector<PromptSource>{"a", Ids{7}}));
}

TEST(ApiRequest, RefusesEveryBrokenFormOfAPrompt) {
  const std::vector<BadField> cases = {
      {R"("echo":true)", "prompt: is missing", "prompt"},
      {R"("prompt":null)", "prompt: is missing", "prompt"},
      {R"("prompt":"")", "prompt: is empty", "prompt"},
      {R"("prompt":[])", "prompt: is empty", "prompt"},
      {R"("prompt":["a",""])", "prompt[1]: is empty", "prompt[1]"},
      {R"("prompt":[[1],[]])", "prompt[1]: is empty", "prompt[1]"},
      {R"("prompt":5)", "prompt: expected string or array, got integer", "prompt"},
      {R"("prompt":{"a":1})", "prompt: expected string or array, got object", "prompt"},
      {R"("prompt":[1,"a"])", "prompt[1]: expected integer, got string", "prompt[1]"},
      {R"("prompt":["a",1])", "prompt[1]: expected string or array, got integer", "prompt[1]"},
      {R"("prompt":[[1,2.5]])", "prompt[0][1]: expected integer, got number", "prompt[0][1]"},
      {R"("prompt":[true])", "prompt[0]: expected string, integer or array, got boolean", "prompt[0]"},
      {R"("prompt":[1,-1])", "prompt[1]: -1 is no token id", "prompt[1]"},
      {R"("prompt":"x","best_of":2)", "best_of: is 2; only the value of n, 1, is supported", "best_of"},
      {R"("prompt":"x","suffix":"y")", "suffix: is not supported by this server", "suffix"},
      {R"("prompt":"x","logprobs":true)", "logprobs: expected integer, got boolean", "logprobs"},
      {R"("prompt":"x","logprobs":21)", "logprobs: is 21; it must be between 0 and 20", "logprobs"},
  };
  for (const BadField& bad : cases) {
    const ApiResult<ApiRequest> result = ParseCompletionRequest(Parse("{" + bad.fields + "}"));
    const auto* error = std::get_if<ApiError>(&result);
    ASSERT_NE(error, nullptr) << bad.fields;
    EXPECT_EQ(error->message, bad.message) << bad.fields;
    EXPECT_EQ(error->param, bad.param) << bad.fields;
  }
}

TEST(ApiRequest, CompletionsMayOnlyScoreTheirPrompt) {
  const ApiRequest request = Completion(R"("prompt":"x","max_tokens":0,"echo":true,"logprobs":3,"best_of":1)");
  EXPECT_EQ(request.max_tokens, 0u);
  EXPECT_TRUE(request.echo);
  EXPECT_EQ(request.sampling.logprobs, 3);
}

TEST(ApiRequest, TheBodyMustBeAnObject) {
  for (const char* body : {"[]", "5", "\"x\"", "null"}) {
    const ApiResult<ApiRequest> result = ParseChatRequest(Parse(body));
    ASSERT_TRUE(std::holds_alternative<ApiError>(result)) << body;
    EXPECT_TRUE(std::get<ApiError>(result).message.starts_with("the body must be a JSON object")) << body;
  }
}

TEST(ApiRequest, ToolsReachTheTemplateUnlessTheyAreTurnedOff) {
  const std::string tools = R"(,"tools":[{"type":"function","function":{"name":"f"}}])";
  EXPECT_NE(Chat(tools).tools.AsArray(), nullptr);
  EXPECT_NE(Chat(tools + R"(,"tool_choice":"auto")").tools.AsArray(), nullptr);
  EXPECT_TRUE(Chat(tools + R"(,"tool_choice":"none")").tools.is_null());
  EXPECT_TRUE(Chat(R"(,"tools":[])").tools.is_null());
}

}  // namespace
}  // namespace cachalot::server
