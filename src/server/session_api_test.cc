// Sessions over HTTP, with an engine whose every answer the test gives.
#include "server/session_api.h"

#include <memory>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "server/cache_salt.h"
#include "server/server.h"
#include "server/testing/fake_generator.h"
#include "server/testing/fake_tokenizer.h"
#include "server/testing/test_client.h"

namespace cachalot::server {
namespace {

using engine::SessionAnswer;
using engine::SessionCommand;
using engine::SessionVerb;
using nlohmann::json;

std::string HashOf(std::string_view key) { return HexOf(Sha256Of(std::as_bytes(std::span(key)))); }

class SessionApiTest : public testing::Test {
 protected:
  void Start(FakeGenerator::Options generator = FakeGenerator::Saying("abc")) {
    generator_ = std::make_unique<FakeGenerator>(std::move(generator));
    ServerOptions options;
    options.port = 0;
    server_ = std::make_unique<Server>(options, ServerDeps{.model = model_,
                                                           .generator = *generator_,
                                                           .clock = clock_,
                                                           .metrics = metrics_,
                                                           .entropy = 42,
                                                           .keys = keys_,
                                                           .version = "1"});
    const Result<uint16_t> port = server_->Start();
    ASSERT_TRUE(port.ok()) << port.status().message();
    port_ = *port;
  }
  void UseTwoTenants() {
    keys_ = ApiKeys::Parse(fmt::format("alice {}\nbob {}\n", HashOf("ka"), HashOf("kb")), "keys").value();
    keys_.SetAdmin("root");
  }
  static std::string Text(std::string_view method, std::string_view path, std::string_view body, std::string_view key) {
    std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n", method, path, body.size());
    if (!key.empty()) text += fmt::format("Authorization: Bearer {}\r\n", key);
    return text + "\r\n" + std::string(body);
  }
  // Asks, has the engine answer so, and gives what the client is told. `seen` becomes the engine's command.
  ClientResponse Ask(std::string_view method, std::string_view path, std::string_view body, SessionAnswer answer,
                     std::string_view key = "") {
    TestClient client(port_);
    client.Send(Text(method, path, body, key));
    seen_ = generator_->WaitForCommands(++commands_).back();
    answer.id = seen_.id;
    answer.verb = seen_.verb;
    engine::StepOutput output;
    output.session_answers.push_back(std::move(answer));
    generator_->Emit(std::move(output));
    return client.Read();
  }
  // Which the engine is not asked about.
  int Refusal(std::string_view method, std::string_view path, std::string_view body, std::string_view key = "") {
    TestClient client(port_);
    client.Send(Text(method, path, body, key));
    return client.Read().status;
  }
  static engine::SessionView View() {
    engine::SessionView view{.name = {"", "s"},
                             .state = engine::SessionState::kWarm,
                             .tokens = 40,
                             .created = 5,
                             .last_used = 9,
                             .host = {32, 3200},
                             .reusable_tokens = 39,
                             .recompute_seconds = 0.5};
    view.load_seconds = 0.25;
    return view;
  }

  FakeTokenizer tokenizer_;
  ServedModel model_{.names = {"tiny"}, .context_tokens = 1000, .pool_tokens = 1000, .tokenizer = &tokenizer_};
  ManualClock clock_{1000};
  Metrics metrics_;
  ApiKeys keys_;
  std::unique_ptr<FakeGenerator> generator_;
  std::unique_ptr<Server> server_;
  uint16_t port_ = 0;
  SessionCommand seen_;
  size_t commands_ = 0;
};

TEST_F(SessionApiTest, ShowsASession) {
  Start();
  const ClientResponse response = Ask("GET", "/v1/kv/sessions/s", "", {.sessions = {View()}});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(json::parse(response.body), json::parse(R"({"id":"s","object":"kv.session","state":"warm","tokens":40,
      "created":5,"last_used":9,"ttl":null,"pinned":false,"in_use":false,"other_model":false,
      "tiers":{"hot":{"tokens":0,"bytes":0},"host":{"tokens":32,"bytes":3200},"disk":{"tokens":0,"bytes":0}},
      "reusable_tokens":39,"cost":{"recompute_seconds":0.5,"load_seconds":0.25}})"));
  EXPECT_EQ(seen_.verb, SessionVerb::kShow);
  EXPECT_EQ(seen_.name, (engine::SessionName{"", "s"}));
}

TEST_F(SessionApiTest, ListsSessions) {
  Start();
  const ClientResponse response =
      Ask("GET", "/v1/kv/sessions?limit=2&after=r", "", {.sessions = {View(), View()}, .more = true});
  const json list = json::parse(response.body);
  EXPECT_EQ(list["object"], "list");
  EXPECT_EQ(list["data"].size(), 2u);
  EXPECT_EQ(list["has_more"], true);
  EXPECT_EQ(seen_.limit, 2u);
  EXPECT_EQ(seen_.after.id, "r");
  EXPECT_FALSE(seen_.every_owner);
}

TEST_F(SessionApiTest, EachVerbTellsWhatItDid) {
  Start();
  const auto told = [&](std::string_view verb, std::string_view body, SessionAnswer answer) {
    const ClientResponse response = Ask("POST", fmt::format("/v1/kv/sessions/s/{}", verb), body, std::move(answer));
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body);
  };
  const json suspended = told("suspend", "", {.sessions = {View()}, .moved_tokens = 32, .durable = true});
  EXPECT_EQ(suspended["stored_tokens"], 32);
  EXPECT_EQ(suspended["durable"], true);
  EXPECT_EQ(suspended["id"], "s");
  EXPECT_EQ(told("resume", R"({"in":1})", {.sessions = {View()}, .moved_tokens = 31})["loaded_tokens"], 31);
  const json pinned = told("pin", "", {.sessions = {View()}, .moved_tokens = 16, .durable = true});
  EXPECT_EQ(pinned["durable"], true);
  EXPECT_EQ(pinned["pinned_tokens"], 16);
  EXPECT_TRUE(seen_.pinned);
  EXPECT_EQ(told("fork", R"({"id":"t"})", {.sessions = {View()}})["durable"], false);
  EXPECT_EQ(seen_.other, "t");
  const json saved = told("save", R"({"file":"f"})", {.sessions = {View()}, .moved_bytes = 77});
  EXPECT_EQ(saved["file"], "f");
  EXPECT_EQ(saved["file_bytes"], 77);
  EXPECT_EQ(told("restore", R"({"file":"f"})", {.sessions = {View()}, .moved_tokens = 5})["loaded_tokens"], 5);
  const ClientResponse deleted = Ask("DELETE", "/v1/kv/sessions/s", "", {.durable = true});
  EXPECT_EQ(json::parse(deleted.body), json::parse(R"({"id":"s","deleted":true,"durable":true})"));
}

TEST_F(SessionApiTest, ErrorsHaveTheirStatus) {
  Start();
  const auto status = [&](SessionAnswer answer) {
    const ClientResponse response = Ask("POST", "/v1/kv/sessions/s/suspend", "", std::move(answer));
    EXPECT_TRUE(json::parse(response.body)["error"]["message"].is_string());
    return response.status;
  };
  EXPECT_EQ(status({.found = false}), 404);
  EXPECT_EQ(status({.status = Invalid("is in use")}), 409);
  EXPECT_EQ(status({.status = Unavailable("the disk fails")}), 503);
  EXPECT_EQ(status({.status = Overloaded("no room")}), 503);
  EXPECT_EQ(status({.status = Corrupt("another key")}), 422);
  EXPECT_EQ(status({.status = Internal("?")}), 500);
}

TEST_F(SessionApiTest, WhatIsWronglyAskedNeverReachesTheEngine) {
  Start();
  EXPECT_EQ(Refusal("POST", "/v1/kv/sessions/%00/suspend", ""), 400);
  EXPECT_EQ(Refusal("POST", "/v1/kv/sessions/s/save", R"({"file":"../x"})"), 400);
  EXPECT_EQ(Refusal("POST", "/v1/kv/sessions/s/dance", ""), 404);
  EXPECT_EQ(Refusal("POST", "/v1/kv/sessions/s", ""), 405);
  EXPECT_EQ(Refusal("GET", "/v1/kv/sessions/s/suspend", ""), 405);
  EXPECT_EQ(Refusal("GET", "/v1/kv/sessions?tenant=bob", ""), 403);
  EXPECT_EQ(Refusal("POST", "/v1/kv/prefetch", "{}"), 400);
  EXPECT_EQ(Refusal("POST", "/v1/kv/prefetch", R"({"session":"s","into":1})"), 400);
  EXPECT_EQ(Ask("GET", "/v1/kv/sessions", "", {}).status, 200);
  EXPECT_EQ(generator_->WaitForCommands(1).size(), 1u);
}

TEST_F(SessionApiTest, PrefetchesSessionsAndPrompts) {
  Start();
  ClientResponse response = Ask("POST", "/v1/kv/prefetch", R"({"session":"s"})", {.sessions = {View()}});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(seen_.verb, SessionVerb::kResume);
  response = Ask("POST", "/v1/kv/prefetch", R"({"prompt":"abc","in":1})", {.moved_tokens = 2});
  EXPECT_EQ(json::parse(response.body), json::parse(R"({"loaded_tokens":2})"));
  EXPECT_EQ(seen_.prompt.size(), 3u);
  EXPECT_EQ(Ask("POST", "/v1/kv/prefetch", R"({"prompt":"abc"})", {.status = Invalid("x")}).status, 400);
}

TEST_F(SessionApiTest, TenantsReachTheirOwnAndTheAdministrationAll) {
  UseTwoTenants();
  Start();
  EXPECT_EQ(Refusal("GET", "/v1/kv/sessions", ""), 401);
  EXPECT_EQ(Refusal("GET", "/v1/kv/sessions", "", "wrong"), 401);
  EXPECT_EQ(Refusal("GET", "/v1/kv/sessions?tenant=bob", "", "ka"), 403);
  EXPECT_EQ(Refusal("GET", "/v1/kv/sessions?tenant=nobody", "", "root"), 400);
  Ask("GET", "/v1/kv/sessions/s", "", {.sessions = {View()}}, "ka");
  EXPECT_EQ(seen_.name.owner, "alice");
  EXPECT_EQ(seen_.scope.salt, TenantSalt("alice"));
  Ask("GET", "/v1/kv/sessions?after=x", "", {}, "kb");
  EXPECT_EQ(seen_.name.owner, "bob");
  EXPECT_EQ(seen_.after, (engine::SessionName{"bob", "x"}));
  EXPECT_FALSE(seen_.every_owner);
  Ask("GET", "/v1/kv/sessions", "", {}, "root");
  EXPECT_TRUE(seen_.every_owner);
  Ask("DELETE", "/v1/kv/sessions/s?tenant=bob", "", {}, "root");
  EXPECT_EQ(seen_.name.owner, "bob");
  for (const char* verb : {"save", "restore"}) {
    const auto file = [&](const char* query, const char* key) {
      Ask("POST", fmt::format("/v1/kv/sessions/s/{}{}", verb, query), R"({"file":"f"})", {}, key);
      return seen_.name.owner;
    };
    EXPECT_EQ(file("", "ka"), "alice") << verb;
    EXPECT_EQ(file("", "kb"), "bob") << verb;
    EXPECT_EQ(file("?tenant=bob", "root"), "bob") << verb;
    EXPECT_EQ(file("", "root"), "") << verb;
    EXPECT_EQ(Refusal("POST", fmt::format("/v1/kv/sessions/s/{}?tenant=alice", verb), R"({"file":"f"})", "kb"), 403);
  }
  Ask("POST", "/v1/kv/prefetch?tenant=bob", R"({"prompt":"a"})", {}, "root");
  EXPECT_EQ(seen_.scope.salt, TenantSalt("bob"));
}

TEST_F(SessionApiTest, ARequestNamesItsSessionInBodyOrHead) {
  UseTwoTenants();
  Start();
  const auto post = [&](std::string_view body, std::string_view header) {
    TestClient client(port_);
    client.Send(PostText("/v1/completions", body, fmt::format("Authorization: Bearer ka\r\n{}", header)));
    return client.Read().status;
  };
  EXPECT_EQ(post(R"({"prompt":"x","kv":{"session":"s","session_ttl":60,"returns_in":2}})", ""), 200);
  EXPECT_EQ(post(R"({"prompt":"x"})", "X-Cachalot-Session: s\r\n"), 200);
  EXPECT_EQ(post(R"({"prompt":"x","kv":{"session":"s"}})", "x-cachalot-session: s\r\n"), 200);
  EXPECT_EQ(post(R"({"prompt":"x","kv":{"session":"s"}})", "X-Cachalot-Session: t\r\n"), 400);
  EXPECT_EQ(post(R"({"prompt":"x"})", "X-Cachalot-Session: \xff\r\n"), 400);
  EXPECT_EQ(post(R"({"prompt":["x","y"],"kv":{"session":"s"}})", ""), 400);
  EXPECT_EQ(post(R"({"prompt":"x","kv":{"session_ttl":60}})", ""), 400);
  EXPECT_EQ(post(R"({"prompt":"x","prompt_cache_key":"s"})", ""), 200);
  const auto requests = generator_->WaitForSubmits(4);
  ASSERT_EQ(requests.size(), 4u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(requests[i].session, (engine::SessionName{"alice", "s"}));
  EXPECT_EQ(requests[0].session_ttl_seconds, 60u);
  EXPECT_EQ(requests[0].returns.in, Nanos(std::chrono::seconds(2)));
  EXPECT_EQ(requests[3].session, std::nullopt);
}

TEST_F(SessionApiTest, TheAnswerTellsHowMuchOfTheHistoryItExtends) {
  FakeGenerator::Options options = FakeGenerator::Saying("abc");
  options.session = engine::SessionReport{.history_tokens = 30, .extended_tokens = 20, .kept = true};
  Start(options);
  const json expected =
      json::parse(R"({"kept":false,"session":{"id":"s","history_tokens":30,"extended_tokens":20,"kept":true}})");
  const json whole =
      json::parse(TestClient(port_).Post("/v1/completions", R"({"prompt":"x","kv":{"session":"s"}})").body);
  EXPECT_EQ(whole["usage"]["kv"], expected);
  const ClientResponse stream = TestClient(port_).Post(
      "/v1/completions",
      R"({"prompt":"x","kv":{"session":"s"},"stream":true,"stream_options":{"include_usage":true}})");
  const std::vector<std::string> events = EventsOf(stream.body);
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(json::parse(events[events.size() - 2])["usage"]["kv"], expected);
  const json without = json::parse(TestClient(port_).Post("/v1/completions", R"({"prompt":"x"})").body);
  EXPECT_FALSE(without["usage"].contains("kv"));
}

TEST_F(SessionApiTest, TheAdministrationSeesHowWasDecided) {
  UseTwoTenants();
  Start();
  EXPECT_EQ(Refusal("GET", "/v1/kv/decisions", "", "ka"), 401);
  TestClient client(port_);
  client.Send(Text("GET", "/v1/kv/decisions", "", "root"));
  EXPECT_EQ(json::parse(client.Read().body), json::parse(R"({"decisions":[{"way":"load"}],"down":[{"way":"drop"}]})"));
}

TEST_F(SessionApiTest, SessionsAndTheirMovesAreCounted) {
  Start();
  engine::StepOutput output;
  output.stats.sessions = {.hot = 3, .warm = 2, .pinned = 1, .begun = 9, .ended = 4, .forgotten = 1, .suspended = 5};
  output.stats.sessions.history_tokens = 100;
  output.stats.sessions.extended_tokens = 90;
  output.stats.time.transfers = std::chrono::milliseconds(2);
  generator_->Emit(output);
  generator_->Emit(output);
  const std::string metrics = TestClient(port_).Get("/metrics").body;
  for (const char* line :
       {"cachalot_sessions{state=\"hot\"} 3", "cachalot_sessions{state=\"warm\"} 2", "cachalot_sessions_pinned 1",
        "cachalot_sessions_begun_total 9", "cachalot_sessions_ended_total{cause=\"ended\"} 4",
        "cachalot_sessions_ended_total{cause=\"forgotten\"} 1", "cachalot_session_moves_total{verb=\"suspended\"} 5",
        "cachalot_session_tokens_total{part=\"history\"} 100", "cachalot_session_tokens_total{part=\"extended\"} 90",
        "cachalot_engine_microseconds_total{use=\"transfers\"} 2000"}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line;
  }
}

TEST_F(SessionApiTest, AClientThatGoesAwayLeavesNothingBehind) {
  Start();
  {
    TestClient client(port_);
    client.Send(Text("POST", "/v1/kv/sessions/s/suspend", "", ""));
    seen_ = generator_->WaitForCommands(++commands_).back();
    client.Reset();
  }
  engine::StepOutput output;
  output.session_answers.push_back({.id = seen_.id, .verb = seen_.verb});
  generator_->Emit(std::move(output));
  EXPECT_EQ(Ask("GET", "/v1/kv/sessions", "", {}).status, 200);
}

TEST_F(SessionApiTest, ADrainingServerChangesNoSession) {
  Start();
  TestClient client(port_), late(port_);
  for (TestClient* each : {&client, &late}) ASSERT_EQ(each->Get("/health").status, 200);  // both are accepted
  late.Send("POST /v1/kv/sessions/s/pin HTTP/1.1\r\nHost: x\r\nContent-Le");
  client.Send(Text("POST", "/v1/kv/sessions/s/suspend", "", ""));
  seen_ = generator_->WaitForCommands(1).back();
  server_->Drain();
  while (TestClient(port_).Get("/health").status != 0) {
  }
  late.Send("ngth: 0\r\n\r\n");
  EXPECT_EQ(late.Read().status, 503);
  engine::StepOutput output;
  output.session_answers.push_back({.id = seen_.id, .verb = seen_.verb, .sessions = {View()}});
  generator_->Emit(std::move(output));
  EXPECT_EQ(client.Read().status, 200);
}

}  // namespace
}  // namespace cachalot::server
