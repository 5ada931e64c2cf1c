#include "server/server.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "server/cache_salt.h"
#include "server/testing/fake_generator.h"
#include "server/testing/fake_tokenizer.h"
#include "server/testing/test_client.h"
#include "text/chat_template.h"

namespace cachalot::server {
namespace {

using nlohmann::json;
using std::chrono::seconds;

constexpr std::string_view kTemplate = "{% for m in messages %}<|turn|>{{ m.role }}: {{ m.content }}{% endfor %}";

constexpr const char* kSettings = R"({"engine":{"eviction":"lru","max-queue":9}})";

class ServerTest : public testing::Test {
 protected:
  void Start(FakeGenerator::Options generator, ServerOptions options = {}) {
    options.port = 0;
    generator_ = std::make_unique<FakeGenerator>(std::move(generator));
    server_ = std::make_unique<Server>(options, ServerDeps{.model = model_,
                                                           .generator = *generator_,
                                                           .clock = clock_,
                                                           .metrics = metrics_,
                                                           .entropy = 42,
                                                           .keys = keys_,
                                                           .public_texts = public_texts_,
                                                           .version = "9.9",
                                                           .settings = ParseJson(kSettings).value()});
    const Result<uint16_t> port = server_->Start();
    ASSERT_TRUE(port.ok()) << port.status().message();
    port_ = *port;
  }
  ClientResponse Complete(const std::string& body) { return TestClient(port_).Post("/v1/completions", body); }
  ClientResponse Chat(const std::string& more) {
    return TestClient(port_).Post("/v1/chat/completions",
                                  R"({"messages":[{"role":"user","content":"hi"}])" + more + "}");
  }
  // The events of a stream; the last one must be [DONE].
  static std::vector<json> Events(const ClientResponse& response) {
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.headers.at("content-type"), "text/event-stream; charset=utf-8");
    std::vector<std::string> events = EventsOf(response.body);
    EXPECT_FALSE(events.empty());
    EXPECT_EQ(events.back(), "[DONE]");
    std::vector<json> parsed;
    for (size_t i = 0; i + 1 < events.size(); ++i) parsed.push_back(json::parse(events[i]));
    return parsed;
  }
  static std::string ErrorCode(const ClientResponse& response) {
    const json error = json::parse(response.body).at("error");
    return error.at("code").is_null() ? "" : error.at("code").get<std::string>();
  }
  bool MetricsHave(const std::string& line) {
    return TestClient(port_).Get("/metrics").body.find(line) != std::string::npos;
  }

  FakeTokenizer tokenizer_;
  text::ChatTemplate template_ = text::ChatTemplate::Parse(kTemplate).value();
  ServedModel model_{.names = {"tiny"},
                     .fingerprint = "fp_1",
                     .context_tokens = 1'000'000,
                     .pool_tokens = 1'000'000,
                     .tokenizer = &tokenizer_,
                     .chat_template = &template_};
  ManualClock clock_{1000};
  Metrics metrics_;
  ApiKeys keys_;
  std::vector<std::string> public_texts_;
  std::unique_ptr<FakeGenerator> generator_;
  std::unique_ptr<Server> server_;
  uint16_t port_ = 0;
};

TEST_F(ServerTest, AnswersAChat) {
  Start(FakeGenerator::Saying("h\xC3\xA9llo"));
  const ClientResponse response = Chat(R"(,"model":"tiny")");
  ASSERT_EQ(response.status, 200) << response.body;
  json answer = json::parse(response.body);
  const std::string id = answer["id"];
  EXPECT_TRUE(id.starts_with("chatcmpl-"));
  EXPECT_EQ(response.headers.at("x-request-id"), id);
  answer.erase("id");
  EXPECT_EQ(answer, json::parse(R"({"object":"chat.completion","created":1000,"model":"tiny",
      "system_fingerprint":"fp_1","choices":[{"index":0,"message":{"role":"assistant","content":"h\u00e9llo",
      "refusal":null},"logprobs":null,"finish_reason":"stop"}],
      "usage":{"prompt_tokens":9,"completion_tokens":7,"total_tokens":16,
      "prompt_tokens_details":{"cached_tokens":0}}})"));
}

TEST_F(ServerTest, StreamsAChat) {
  Start(FakeGenerator::Saying("h\xC3\xA9!"));
  const std::vector<json> events = Events(Chat(R"(,"stream":true,"stream_options":{"include_usage":true})"));
  ASSERT_GE(events.size(), 4u);  // the texts of several steps may come together
  EXPECT_EQ(events[0]["choices"][0]["delta"], json::parse(R"({"role":"assistant","content":""})"));
  const size_t last = events.size() - 2;
  std::string text;
  for (size_t i = 0; i <= last; ++i) {
    EXPECT_EQ(events[i]["object"], "chat.completion.chunk");
    EXPECT_EQ(events[i]["id"], events[0]["id"]);
    EXPECT_TRUE(events[i]["usage"].is_null());
    const json& choice = events[i]["choices"][0];
    text += choice["delta"].value("content", "");
    EXPECT_EQ(choice["finish_reason"], i == last ? json("stop") : json());
  }
  EXPECT_EQ(text, "h\xC3\xA9!");
  EXPECT_EQ(events[last]["choices"][0]["delta"], json::object());
  EXPECT_EQ(events.back()["choices"], json::array());
  EXPECT_EQ(events.back()["usage"]["completion_tokens"], 5);
}

TEST_F(ServerTest, StreamsEachTokenAsItComesButNoHalfCharacters) {
  FakeGenerator::Options options = FakeGenerator::Saying("h\xC3\xA9!");
  options.automatic = false;
  Start(options);
  TestClient client(port_);
  client.Send(PostText("/v1/completions", R"({"prompt":"x","stream":true})"));
  generator_->WaitForSubmits(1);
  for (const char* piece : {"\"text\":\"h\"", "", "\"text\":\"\xC3\xA9\"", "\"text\":\"!\"", "[DONE]"}) {
    generator_->Step();
    if (*piece != 0) {
      EXPECT_NE(client.ReadUntil(piece), "") << piece;
    }
  }
}

TEST_F(ServerTest, SeveralPromptsAndChoicesKeepTheirPlaces) {
  Start({.answer = [](const engine::GenerateRequest& request, uint32_t choice) {
    return std::vector<TokenId>{request.prompt[0], 'A' + choice};
  }});
  const std::string body = R"({"prompt":["x","y"],"n":2)";
  const json answer = json::parse(Complete(body + "}").body);
  std::vector<std::string> texts;
  for (const json& choice : answer["choices"]) texts.push_back(choice["text"]);
  EXPECT_EQ(texts, (std::vector<std::string>{"xA", "xB", "yA", "yB"}));
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 2);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 12);
  std::vector<std::string> streamed(4);
  for (const json& event : Events(Complete(body + R"(,"stream":true})"))) {
    const json& choice = event["choices"][0];
    streamed[choice["index"].get<size_t>()] += choice["text"].get<std::string>();
  }
  EXPECT_EQ(streamed, texts);
}

TEST_F(ServerTest, WhatTheClientAskedReachesTheGenerator) {
  Start(FakeGenerator::Saying("x"));
  Complete(R"({"prompt":[5,6],"max_tokens":7,"n":2,"temperature":0,"seed":11,"logprobs":2,"stop":["a"],"echo":true,
               "stop_token_ids":[9],"top_k":3})");
  Complete(R"({"prompt":[[5],[5]]})");
  const std::vector<engine::GenerateRequest> requests = generator_->WaitForSubmits(3);
  EXPECT_EQ(requests[0].prompt, (std::vector<TokenId>{5, 6}));
  EXPECT_EQ(requests[0].max_tokens, 7u);
  EXPECT_EQ(requests[0].n, 2u);
  EXPECT_EQ(requests[0].sampling.temperature, 0.0f);
  EXPECT_EQ(requests[0].sampling.seed, 11u);
  EXPECT_EQ(requests[0].sampling.logprobs, 2);
  EXPECT_EQ(requests[0].sampling.top_k, 3u);
  EXPECT_EQ(requests[0].prompt_logprobs, 2);
  EXPECT_EQ(requests[0].end_tokens, (std::vector<TokenId>{9, FakeTokenizer::kEos, FakeTokenizer::kEnd}));
  EXPECT_TRUE(static_cast<bool>(requests[0].stop));
  EXPECT_FALSE(static_cast<bool>(requests[1].stop));
  EXPECT_EQ(requests[1].max_tokens, 16u);
  // Without a seed each prompt gets one of its own.
  EXPECT_NE(requests[1].sampling.seed, requests[2].sampling.seed);
  EXPECT_NE(requests[1].id, requests[2].id);
}

TEST_F(ServerTest, StopStringsEndTheTextBeforeThem) {
  Start(FakeGenerator::Saying("one. two. three."));
  const json whole = json::parse(Complete(R"({"prompt":"p","stop":[" two","three"],"logprobs":0})").body);
  EXPECT_EQ(whole["choices"][0]["text"], "one.");
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(whole["choices"][0]["logprobs"]["tokens"], json::parse(R"(["o","n","e","."])"));
  std::string text;
  for (const json& event : Events(Complete(R"({"prompt":"p","stop":" two","stream":true})"))) {
    text += event["choices"][0]["text"].get<std::string>();
  }
  EXPECT_EQ(text, "one.");
}

TEST_F(ServerTest, TellsLogprobs) {
  Start(FakeGenerator::Saying("ab"));
  const json chat = json::parse(Chat(R"(,"logprobs":true,"top_logprobs":1)").body);
  const json content = chat["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 2u);  // the end token is not told
  EXPECT_EQ(content[1], json::parse(R"({"token":"b","logprob":-0.25,"bytes":[98],
      "top_logprobs":[{"token":"b","logprob":-0.25,"bytes":[98]}]})"));
  json streamed = json::array();
  for (const json& event : Events(Chat(R"(,"logprobs":true,"top_logprobs":1,"stream":true)"))) {
    const json& logprobs = event["choices"][0]["logprobs"];
    if (logprobs.is_null()) continue;
    for (const json& entry : logprobs["content"]) streamed.push_back(entry);
  }
  EXPECT_EQ(streamed, content);
}

TEST_F(ServerTest, EchoRepeatsThePromptWithItsLogprobs) {
  Start(FakeGenerator::Saying("cd"));
  const json answer =
      json::parse(Complete(R"({"prompt":"ab","max_tokens":1,"echo":true,"logprobs":1})").body)["choices"][0];
  EXPECT_EQ(answer["text"], "abc");
  EXPECT_EQ(answer["finish_reason"], "length");
  EXPECT_EQ(answer["logprobs"]["tokens"], json::parse(R"(["a","b","c"])"));
  EXPECT_EQ(answer["logprobs"]["token_logprobs"], json::parse("[null,-0.25,-0.25]"));
  EXPECT_EQ(answer["logprobs"]["text_offset"], json::parse("[0,1,2]"));
  const json scored = json::parse(Complete(R"({"prompt":"ab","max_tokens":0,"echo":true,"logprobs":1})").body);
  EXPECT_EQ(scored["choices"][0]["text"], "ab");
  EXPECT_EQ(scored["choices"][0]["logprobs"]["tokens"].size(), 2u);
  EXPECT_EQ(scored["usage"]["completion_tokens"], 0);
  const json single = json::parse(Complete(R"({"prompt":"a","max_tokens":1,"echo":true,"logprobs":1,"n":2})").body);
  for (const json& choice : single["choices"]) {
    EXPECT_EQ(choice["logprobs"]["token_logprobs"], json::parse("[null,-0.25]"));
    EXPECT_EQ(choice["logprobs"]["text_offset"], json::parse("[0,1]"));
  }
  std::string text;
  json tokens = json::array();
  for (const json& event : Events(Complete(R"({"prompt":"ab","echo":true,"logprobs":1,"stream":true})"))) {
    text += event["choices"][0]["text"].get<std::string>();
    if (event["choices"][0]["logprobs"].is_null()) continue;
    for (const json& token : event["choices"][0]["logprobs"]["tokens"]) tokens.push_back(token);
  }
  EXPECT_EQ(text, "abcd");
  EXPECT_EQ(tokens, json::parse(R"(["a","b","c","d"])"));
}

TEST_F(ServerTest, ServesItsPages) {
  Start(FakeGenerator::Saying("x"), {.model_alias = "small,,other"});
  TestClient client(port_);
  EXPECT_EQ(json::parse(client.Get("/health").body), json::parse(R"({"status":"ok"})"));
  EXPECT_EQ(json::parse(client.Get("/version").body), json::parse(R"({"version":"9.9"})"));
  EXPECT_NE(client.Get("/").body.find("/v1/chat/completions"), std::string::npos);
  const json models = json::parse(client.Get("/v1/models").body);
  ASSERT_EQ(models["data"].size(), 3u);
  EXPECT_EQ(models["data"][0], json::parse(R"({"id":"tiny","object":"model","created":1000,"owned_by":"cachalot",
      "root":"tiny","max_model_len":1000000})"));
  EXPECT_EQ(json::parse(client.Get("/v1/models/other").body)["id"], "other");
  EXPECT_EQ(client.Get("/v1/models/absent").status, 404);
  EXPECT_EQ(json::parse(Complete(R"({"prompt":"x","model":"small"})").body)["model"], "small");
}

TEST_F(ServerTest, WrongPathsAndMethodsGetJsonErrors) {
  Start(FakeGenerator::Saying("x"), {.cors_origin = "*"});
  TestClient client(port_);
  EXPECT_EQ(client.Get("/v2/what").status, 404);
  const ClientResponse wrong = client.Get("/v1/chat/completions");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers.at("allow"), "POST, OPTIONS");
  EXPECT_EQ(ErrorCode(wrong), "method_not_allowed");
  client.Send("DELETE /v1/models/tiny HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.Read().status, 405);
  client.Send("POST /v1/completions HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.Read().status, 411);
  client.Send("OPTIONS /v1/completions HTTP/1.1\r\nAccess-Control-Request-Headers: authorization,x-y\r\n\r\n");
  const ClientResponse options = client.Read();
  EXPECT_EQ(options.status, 204);
  EXPECT_EQ(options.headers.at("access-control-allow-headers"), "authorization,x-y");
  EXPECT_EQ(options.headers.at("access-control-allow-origin"), "*");
}

TEST_F(ServerTest, BadRequestsAreRefusedAndHurtNobody) {
  Start(FakeGenerator::Saying("fine"));
  TestClient client(port_);  // one connection for all: an error of the API does not end it
  for (const std::string& body : std::vector<std::string>{
           "", "{", "[]", "{\"prompt\":\"\xff\xfe\"}", R"({"prompt":""})", R"({"prompt":"x","temperature":-1})",
           R"({"prompt":"x","n":"many"})", R"({"prompt":"x","max_tokens":2000000})", std::string(100'000, '[')}) {
    const ClientResponse response = client.Post("/v1/completions", body);
    EXPECT_EQ(response.status, 400) << body.substr(0, 50);
    const json error = json::parse(response.body).at("error");
    EXPECT_TRUE(error.at("message").is_string() && error.contains("type") && error.contains("param") &&
                error.contains("code"));
  }
  EXPECT_EQ(client.Post("/v1/completions", R"({"prompt":"x","model":"none"})").status, 404);
  EXPECT_EQ(json::parse(client.Post("/v1/completions", R"({"prompt":"x"})").body)["choices"][0]["text"], "fine");
  EXPECT_TRUE(MetricsHave("cachalot_http_responses_total{status=\"400\"} 9"));
}

TEST_F(ServerTest, RefusalsOfTheEngineGetTheirStatus) {
  using engine::RejectReason;
  Start(FakeGenerator::Saying("x"));
  const auto refused = [&](RejectReason reason, const std::string& more) {
    generator_->RejectWith({.reason = reason, .message = "needs 9, has 8", .needed = 9, .available = 8});
    const ClientResponse response = Complete(R"({"prompt":"x")" + more + "}");
    EXPECT_NE(response.body.find(reason == RejectReason::kShuttingDown ? "shutting down" : "needs 9, has 8"),
              std::string::npos);
    return response;
  };
  for (const std::string more : {"", R"(,"stream":true)"}) {
    EXPECT_EQ(ErrorCode(refused(RejectReason::kContextLength, more)), "context_length_exceeded");
    EXPECT_EQ(refused(RejectReason::kContextLength, more).status, 400);
    EXPECT_EQ(refused(RejectReason::kTooLarge, more).status, 413);
    const ClientResponse full = refused(RejectReason::kQueueFull, more);
    EXPECT_EQ(full.status, 429);
    EXPECT_EQ(full.headers.at("retry-after"), "1");
    EXPECT_EQ(refused(RejectReason::kShuttingDown, more).status, 503);
    EXPECT_EQ(refused(RejectReason::kInvalid, more).status, 400);
  }
}

TEST_F(ServerTest, AFailedRequestSaysSo) {
  FakeGenerator::Options options = FakeGenerator::Saying("abc");
  options.error = Internal("the step failed");
  Start(options);
  const ClientResponse whole = Complete(R"({"prompt":"x"})");
  EXPECT_EQ(whole.status, 500);
  EXPECT_NE(whole.body.find("the step failed"), std::string::npos);
}

TEST_F(ServerTest, AStreamThatFailsEndsWithAnErrorEvent) {
  FakeGenerator::Options options = FakeGenerator::Saying("abc");
  options.automatic = false;
  Start(options);
  TestClient client(port_);
  client.Send(PostText("/v1/completions", R"({"prompt":"x","stream":true})"));
  const RequestId id = generator_->WaitForSubmits(1)[0].id;
  generator_->Step();
  EXPECT_NE(client.ReadUntil("\"a\""), "");
  generator_->Emit({.finishes = {{.id = id, .reason = engine::FinishReason::kError, .error = Internal("broke")}}});
  EXPECT_NE(client.ReadUntil("0\r\n\r\n").find(R"(data: {"error":{"message":"broke","type":"server_error")"),
            std::string::npos);
  EXPECT_EQ(client.Get("/health").status, 200);
}

TEST_F(ServerTest, WhatIsNotWrittenDegradesItsHealth) {
  Start(FakeGenerator::Saying("x"));
  TestClient client(port_);
  engine::StepOutput output;
  output.stats.steps = 1;
  output.stats.tiers.degraded = true;
  generator_->Emit(output);
  const auto expected = json::parse(R"({"status":"degraded","problem":"the disk tier takes no writes"})");
  while (json::parse(client.Get("/health").body) != expected) {
  }
  output.stats.steps = 2;
  output.stats.tiers.degraded = false;
  generator_->Emit(output);
  while (json::parse(client.Get("/health").body) == expected) {
  }
  EXPECT_EQ(json::parse(client.Get("/health").body), json::parse(R"({"status":"ok"})"));
}

TEST_F(ServerTest, AClientThatGoesAwayIsCancelled) {
  FakeGenerator::Options options = FakeGenerator::Saying("abcdef");
  options.automatic = false;
  Start(options);
  for (const bool stream : {true, false}) {
    const size_t before = generator_->running();
    TestClient client(port_);
    client.Send(PostText("/v1/completions", fmt::format(R"({{"prompt":["x","y"],"stream":{}}})", stream)));
    const size_t submits = stream ? 2 : 4;
    generator_->WaitForSubmits(submits);
    generator_->Step();
    if (stream) {
      EXPECT_NE(client.ReadUntil("\"a\""), "");
    }
    client.Close();
    generator_->WaitForCancels(submits);
    EXPECT_EQ(generator_->running(), before);
  }
  generator_->Step();
  EXPECT_EQ(TestClient(port_).Get("/health").status, 200);
  EXPECT_TRUE(MetricsHave("cachalot_requests_total{outcome=\"cancelled\"} 2"));
}

TEST_F(ServerTest, AClientThatDoesNotReadIsCancelledAndSlowsNobody) {
  FakeGenerator::Options options = FakeGenerator::Repeating("x");
  options.automatic = false;
  Start(options, {.stream_buffer = 64 * 1024});
  TestClient slow(port_, 4096), other(port_);
  slow.Send(PostText("/v1/completions", R"({"prompt":"x","stream":true})"));
  const RequestId id = generator_->WaitForSubmits(1)[0].id;
  engine::StepOutput step;
  step.tokens.assign(16 * 1024, {.id = id, .token = {.token = 'x'}});
  // The answer to `other` comes after what the step before it gave is written: no step waits in the server, whose
  // catching up would make the stream small enough for the buffers of the kernel.
  while (generator_->cancels() == 0) {
    generator_->Emit(step);
    ASSERT_EQ(other.Get("/health").status, 200);
  }
}

TEST_F(ServerTest, SilentStreamsGetHeartbeats) {
  FakeGenerator::Options options = FakeGenerator::Saying("a");
  options.automatic = false;
  Start(options, {.heartbeat = 15});
  TestClient client(port_);
  client.Send(PostText("/v1/completions", R"({"prompt":"x","stream":true})"));
  generator_->WaitForSubmits(1);
  clock_.Advance(seconds(16));
  EXPECT_NE(client.ReadUntil(": still working\n\n"), "");
  clock_.Advance(seconds(16));
  EXPECT_NE(client.ReadUntil(": still working\n\n"), "");
  generator_->Step();
  generator_->Step();
  EXPECT_NE(client.ReadUntil("[DONE]").find("\"a\""), std::string::npos);
}

TEST_F(ServerTest, TheKeyIsAskedForWhereThereIsOne) {
  keys_.AddSingle("secret");
  Start(FakeGenerator::Saying("x"));
  TestClient client(port_);
  const ClientResponse refused = client.Get("/v1/models");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(ErrorCode(refused), "invalid_api_key");
  for (const char* key : {"", "secre", "secret1", "Secret", "secrets"}) {
    client.Send(fmt::format("GET /v1/models HTTP/1.1\r\nAuthorization: Bearer {}\r\n\r\n", key));
    EXPECT_EQ(client.Read().status, 401) << key;
  }
  client.Send("GET /v1/models HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n");
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(client.Get("/health").status, 200);
}

TEST_F(ServerTest, TenantsAndCacheSaltsKeepTheirKvApart) {
  keys_ = ApiKeys::Parse(
              "alice ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n"
              "bob 41ef4bb0b23661e66301aac36066912dac037827b4ae63a7b1165a5aa93ed4eb\n",
              "keys")
              .value();
  keys_.AddSingle("one");
  public_texts_ = {"Be kind.\n"};
  Start(FakeGenerator::Saying("x"));
  TestClient client(port_);
  const auto ask = [&](const std::string& key, const std::string& body) {
    client.Send(PostText("/v1/completions", body, fmt::format("Authorization: Bearer {}\r\n", key)));
    return client.Read().status;
  };
  EXPECT_EQ(ask("nobody", R"({"prompt":"x"})"), 401);
  EXPECT_EQ(ask("abc", R"({"prompt":"Be kind. Go"})"), 200);
  EXPECT_EQ(ask("open sesame", R"({"prompt":"Be mean."})"), 200);
  EXPECT_EQ(ask("one", R"({"prompt":["x","y"]})"), 200);
  EXPECT_EQ(ask("abc", R"({"prompt":"x","cache_salt":"s"})"), 200);
  EXPECT_EQ(ask("one", R"({"prompt":"x","cache_salt":"s"})"), 200);
  EXPECT_EQ(ask("one", R"({"prompt":"x","cache_salt":""})"), 400);
  const std::vector<engine::GenerateRequest> requests = generator_->WaitForSubmits(6);
  EXPECT_EQ(requests[0].scope.salt, TenantSalt("alice"));
  EXPECT_EQ(requests[0].scope.public_tokens, 8u);
  const uint32_t tenants[] = {0, 1, 2, 2, 0, 2};
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(requests[i].tenant, TenantId(tenants[i])) << i;
  EXPECT_EQ(requests[1].scope.salt, TenantSalt("bob"));
  EXPECT_EQ(requests[1].scope.public_tokens, 3u);
  EXPECT_EQ(requests[2].scope.salt, CacheSalt{});
  EXPECT_EQ(requests[3].scope.salt, CacheSalt{});
  EXPECT_EQ(requests[4].scope.salt, NarrowedSalt(TenantSalt("alice"), "s"));
  EXPECT_EQ(requests[5].scope.salt, NarrowedSalt({}, "s"));
}

TEST_F(ServerTest, TheKvIsShownToTheAdminOnly) {
  Start(FakeGenerator::Saying("x"));
  for (const char* path : {"/v1/kv", "/v1/kv/probe", "/v1/kv/clear"}) {
    EXPECT_EQ(TestClient(port_).Get(path).status, 404) << path;
    EXPECT_EQ(TestClient(port_).Post(path, "{}").status, 404) << path;
  }
  server_->Stop();
  keys_.AddSingle("one");
  keys_.SetAdmin("root");
  Start(FakeGenerator::Saying("x"));
  for (const char* key : {"", "Authorization: Bearer one\r\n", "Authorization: Bearer roo\r\n"}) {
    TestClient client(port_);
    client.Send(PostText("/v1/kv/clear", "{}", key));
    const ClientResponse refused = client.Read();
    EXPECT_EQ(refused.status, 401) << key;
    EXPECT_EQ(ErrorCode(refused), "invalid_admin_key");
  }
  EXPECT_EQ(generator_->WaitForInquiries(0).size(), 0u);
}

TEST_F(ServerTest, TheAdminsQuestionsReachTheEngine) {
  keys_ = ApiKeys::Parse("alice ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "keys").value();
  keys_.SetAdmin("root");
  public_texts_ = {"abc"};
  Start(FakeGenerator::Saying("x"));
  TestClient client(port_);
  const std::string key = "Authorization: Bearer root\r\n";
  const auto post = [&](const std::string& path, const std::string& body) {
    client.Send(PostText(path, body, key));
    return client.Read();
  };
  client.Send("GET /v1/kv HTTP/1.1\r\n" + key + "\r\n");
  const json kv = json::parse(client.Read().body);
  EXPECT_EQ(kv["bytes"], json::parse(R"({"total":5000,"live":3000,"idle":0,"reserved":0,"transit":0,"waste":0,)"
                                     R"("padding":0,"free":2000,"shared":1000})"));
  EXPECT_EQ(kv["prompt_tokens"]["salt"], 0);
  EXPECT_EQ(kv["shadow_hit_tokens"]["inf"], 0);
  EXPECT_EQ(kv["tokens"], json::parse(R"({"in_sequences":40,"indexed":90})"));
  EXPECT_EQ(kv["index_nodes"], 7);
  EXPECT_EQ(kv["settings"], json::parse(kSettings));
  EXPECT_EQ(kv["identity"].get<std::string>().size(), 64u);
  EXPECT_EQ(json::parse(post("/v1/kv/clear", "").body), json::parse(R"({"evicted_slots":2})"));

  json probe = json::parse(post("/v1/kv/probe", R"({"prompt":["abcd","x"],"tenant":"alice","n":3})").body);
  ASSERT_EQ(probe["prompts"].size(), 2u);
  EXPECT_FALSE(probe["prompts"][0]["reason"].get<std::string>().empty());
  probe["prompts"][0].erase("reason");
  EXPECT_EQ(probe["prompts"][0], json::parse(R"({"prompt_tokens":4,"hit_tokens":3,"awaited_tokens":3,"disk_tokens":0,
      "public_tokens":3,"key":null,"limit":"last_token"})"));
  EXPECT_EQ(post("/v1/kv/probe", R"({"messages":[{"role":"user","content":"hi"}],"cache_salt":"s"})").status, 200);
  const json scored = json::parse(post("/v1/kv/probe", R"({"prompt":"ab","echo":true,"logprobs":0})").body);
  EXPECT_EQ(scored["prompts"][0]["limit"], "scored");
  for (const char* wrong : {"", "{", "{}", R"({"prompt":"x","tenant":"carol"})", R"({"prompt":"x","tenant":1})"}) {
    EXPECT_EQ(post("/v1/kv/probe", wrong).status, 400) << wrong;
  }
  const std::vector<engine::Inquiry> asked = generator_->WaitForInquiries(5);
  ASSERT_EQ(asked.size(), 5u);
  EXPECT_EQ(asked[0].kind, engine::InquiryKind::kOverview);
  EXPECT_EQ(asked[1].kind, engine::InquiryKind::kClear);
  EXPECT_EQ(asked[2].requests[0].scope.salt, TenantSalt("alice"));
  EXPECT_EQ(asked[3].requests[0].scope.salt, NarrowedSalt({}, "s"));
}

TEST_F(ServerTest, AFullQueueSaysWhenToComeAgain) {
  FakeGenerator::Options options = FakeGenerator::Saying("abc");
  options.automatic = false;
  Start(options);
  TestClient client(port_);
  client.Send(PostText("/v1/completions", R"({"prompt":"x"})"));
  const RequestId id = generator_->WaitForSubmits(1)[0].id;
  engine::StepOutput output;
  output.rejections = {{.id = id, .reason = engine::RejectReason::kQueueFull, .message = "full", .wait_seconds = 24.2}};
  generator_->Emit(output);
  const ClientResponse full = client.Read();
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(full.headers.at("retry-after"), "25");
}

TEST_F(ServerTest, CachedTokensAreToldOncePerPrompt) {
  FakeGenerator::Options options = FakeGenerator::Saying("abc");
  options.automatic = false;
  Start(options);
  for (const bool stream : {false, true}) {
    TestClient client(port_);
    client.Send(PostText("/v1/completions",
                         fmt::format(R"({{"prompt":["wxyz","ab"],"n":2,"max_tokens":1{}}})",
                                     stream ? R"(,"stream":true,"stream_options":{"include_usage":true})" : "")));
    const auto submits = generator_->WaitForSubmits(stream ? 4 : 2);
    engine::StepOutput output;
    for (size_t p = submits.size() - 2; p < submits.size(); ++p) {
      for (uint32_t choice = 0; choice < 2; ++choice) {
        output.finishes.push_back({.id = submits[p].id,
                                   .choice = choice,
                                   .reason = engine::FinishReason::kLength,
                                   .prompt_tokens = static_cast<uint32_t>(submits[p].prompt.size()),
                                   .cached_tokens = static_cast<uint32_t>(submits[p].prompt.size()) - 1,
                                   .output_tokens = 1});
      }
    }
    generator_->Emit(output);
    const ClientResponse response = client.Read();
    const json usage = stream ? Events(response).back()["usage"] : json::parse(response.body)["usage"];
    EXPECT_EQ(usage, json::parse(R"({"prompt_tokens":6,"completion_tokens":4,"total_tokens":10,
        "prompt_tokens_details":{"cached_tokens":4}})"));
  }
}

TEST_F(ServerTest, MetricsOfTheKvFollowTheEngine) {
  Start(FakeGenerator::Saying("x"));
  engine::StepOutput output;
  output.duration = seconds(2);
  output.predicted_seconds = 1.25;
  output.stats.steps = 1;
  output.stats.total_slots = 50;
  output.stats.free_slots = 20;
  output.stats.idle_slots = 10;
  output.stats.awaiting_requests = 3;
  output.stats.prompt_tokens_cached = 7;
  output.stats.tokens_recomputed = 8;
  output.stats.preemptions = 9;
  output.stats.slots_evicted = 11;
  output.stats.hits.tokens[static_cast<size_t>(TokenClass::kCapacity)] = 20;
  output.stats.hits.tokens[static_cast<size_t>(TokenClass::kSalt)] = 30;
  output.stats.hits.tokens[static_cast<size_t>(TokenClass::kNew)] = 4;
  output.stats.hits.shadow_tokens = {1, 2, 3, 4, 5};
  output.stats.residency.lifetimes.Add(45);
  output.stats.residency.lifetimes.Add(45);
  output.stats.residency.reuse_gaps.Add(1e9);
  output.stats.ledger = {.total_bytes = 100, .live_bytes = 60, .shared_bytes = 6, .free_bytes = 40};
  output.stats.step_curve = {0.5, 0.25, 0, 0, 0};
  output.stats.pressure.some = {.shares = {0.5, 0.25, 0.125}, .total = seconds(3)};
  output.stats.tokens_computed = 70;
  output.stats.refault_tokens = 35;
  output.stats.refault_share = 0.5;
  output.stats.limit_decreases = 2;
  output.stats.taken_slots = 40;
  output.stats.taken_slots_limit = 45;
  generator_->Emit(output);
  generator_->Emit(output);  // no step more
  const std::string metrics = TestClient(port_).Get("/metrics").body;
  for (const char* line : {"cachalot_kv_idle_slots 10",
                           "cachalot_awaiting_requests 3",
                           "cachalot_prompt_tokens_cached_total 7",
                           "cachalot_recomputed_tokens_total 8",
                           "cachalot_preemptions_total 9",
                           "cachalot_kv_evicted_slots_total 11",
                           "cachalot_step_seconds_count 1",
                           "cachalot_step_seconds_sum 2",
                           "cachalot_step_time_ratio_count 1",
                           "cachalot_step_time_ratio_sum 1.6",
                           "cachalot_step_cost_seconds{term=\"row\"} 0.25",
                           "cachalot_prompt_tokens_by_class_total{class=\"capacity\"} 20",
                           "cachalot_prompt_tokens_by_class_total{class=\"new\"} 34",
                           "cachalot_shadow_hit_tokens_total{capacity=\"0.5\"} 1",
                           "cachalot_shadow_hit_tokens_total{capacity=\"inf\"} 5",
                           "cachalot_kv_block_lifetime_seconds_bucket{le=\"30\"} 0",
                           "cachalot_kv_block_lifetime_seconds_bucket{le=\"60\"} 2",
                           "cachalot_kv_block_lifetime_seconds_sum 90",
                           "cachalot_kv_block_reuse_gap_seconds_bucket{le=\"86400\"} 0",
                           "cachalot_kv_block_reuse_gap_seconds_count 1",
                           "cachalot_kv_ledger_bytes{part=\"live\"} 60",
                           "cachalot_kv_ledger_bytes{part=\"free\"} 40",
                           "cachalot_kv_shared_bytes 6",
                           "cachalot_kv_pressure_some{seconds=\"60\"} 0.25",
                           "cachalot_kv_pressure_full{seconds=\"10\"} 0",
                           "cachalot_kv_pressure_microseconds_total{level=\"some\"} 3000000",
                           "cachalot_computed_tokens_total 70",
                           "cachalot_refault_tokens_total 35",
                           "cachalot_refault_share 0.5",
                           "cachalot_kv_limit_decreases_total 2",
                           "cachalot_kv_taken_slots 40",
                           "cachalot_kv_taken_slots_limit 45"}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line;
  }
}

TEST_F(ServerTest, ADrainFinishesStreamsAndRefusesNewWork) {
  FakeGenerator::Options options = FakeGenerator::Saying("abc");
  options.automatic = false;
  Start(options);
  TestClient stream(port_), queued(port_);
  stream.Send(PostText("/v1/completions", R"({"prompt":"x","stream":true})"));
  generator_->WaitForSubmits(1);
  generator_->Step();
  // Half a request when the drain begins: it is read and answered.
  const std::string late = PostText("/v1/completions", R"({"prompt":"x"})");
  queued.Send(late.substr(0, 20));
  EXPECT_EQ(TestClient(port_).Get("/health").status, 200);
  std::thread waiter([&] { server_->Wait(); });
  server_->Drain();
  while (TestClient(port_).Get("/health").status != 0) {
  }
  queued.Send(late.substr(20));
  const ClientResponse refused = queued.Read();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.at("connection"), "close");
  queued.Close();
  while (generator_->Step()) {
  }
  std::string text;
  for (const json& event : Events(stream.Read())) text += event["choices"][0]["text"].get<std::string>();
  EXPECT_EQ(text, "abc");
  stream.Close();
  waiter.join();
}

TEST_F(ServerTest, ADrainEndsAtItsLimit) {
  FakeGenerator::Options options = FakeGenerator::Saying("abc");
  options.automatic = false;
  Start(options, {.drain_timeout = 5});
  TestClient stream(port_);
  stream.Send(PostText("/v1/completions", R"({"prompt":"x","stream":true})"));
  generator_->WaitForSubmits(1);
  server_->Drain();
  while (TestClient(port_).Get("/health").status != 0) {
  }
  std::thread waiter([&] { server_->Wait(); });
  clock_.Advance(seconds(6));
  waiter.join();
  EXPECT_EQ(stream.ReadToEnd(), "");
}

TEST_F(ServerTest, StopMayBeCalledAtAnyTimeAndTwice) {
  Start(FakeGenerator::Repeating("x"));
  TestClient stream(port_);
  stream.Send(PostText("/v1/completions", R"({"prompt":"x","stream":true,"max_tokens":900000})"));
  generator_->WaitForSubmits(1);
  server_->Stop();
  server_->Stop();
  server_->Wait();
}

TEST_F(ServerTest, BadOptionsAreAllNamed) {
  FakeGenerator generator(FakeGenerator::Saying(""));
  Server server({.port = 70000, .cors_origin = "a\r\nb", .text_workers = 0},
                {.model = model_, .generator = generator, .clock = clock_, .metrics = metrics_});
  const Result<uint16_t> result = server.Start();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message(),
            "port is 70000; it must be between 0 and 65535; text-workers is 0; it must be between 1 and 256; "
            "cors-origin contains a control character");
}

TEST_F(ServerTest, TimesAndTokensAreCounted) {
  Start(FakeGenerator::Saying("abc"));
  EXPECT_EQ(Complete(R"({"prompt":"xy"})").status, 200);
  const std::string metrics = TestClient(port_).Get("/metrics").body;
  for (const char* line :
       {"cachalot_requests_total{outcome=\"stop\"} 1", "cachalot_time_to_first_token_seconds_count 1",
        "cachalot_inter_token_seconds_count 3", "cachalot_request_seconds_count 1", "cachalot_prompt_tokens_sum 2",
        "cachalot_output_tokens_sum 4", "cachalot_generated_tokens_total 4", "cachalot_steps_total 4",
        "cachalot_http_responses_total{status=\"200\"} 1"}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line << "\n" << metrics;
  }
}

}  // namespace
}  // namespace cachalot::server
