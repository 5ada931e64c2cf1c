#include "load/driver.h"

#include <algorithm>
#include <atomic>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/random.h"
#include "load/testing/fake_server.h"

namespace cachalot::load {
namespace {

constexpr bool (*kGoOn)(double) = [](double) { return true; };

LoadOptions Options(const FakeServer& server) {
  LoadOptions options;
  options.url = server.url();
  options.model = "fake";
  options.tokens_per_word = 1;
  options.requests = 20;
  options.clients = 4;
  options.prompt_tokens = 10;
  options.timeout = 30;
  return options;
}

LoadReport RunOk(const LoadOptions& options, const Clock& clock = SteadyClock()) {
  Result<LoadReport> report = RunLoad(options, clock, kGoOn);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? std::move(report).value() : LoadReport({}, {});
}

// Runs as time does, and can leap.
class LeapingClock final : public Clock {
 public:
  Nanos Now() const override { return steady_.Now() + Nanos(ahead_.load()); }
  int64_t UnixSeconds() const override { return steady_.UnixSeconds(); }
  void SleepUntil(Nanos moment) override { steady_.SleepUntil(moment - Nanos(ahead_.load())); }
  void Leap(Nanos by) { ahead_ += by.count(); }

 private:
  SteadyClock steady_;
  std::atomic<Nanos::rep> ahead_{0};
};

std::vector<std::string> Bodies(FakeServer* server) {
  std::vector<std::string> bodies;
  for (const FakeRequest& request : server->requests()) bodies.push_back(request.body);
  std::ranges::sort(bodies);
  return bodies;
}

TEST(Driver, AClosedLoopSendsWhatWasAskedOverKeptConnections) {
  FakeServer server(GoodReply);
  const LoadReport report = RunOk(Options(server));
  EXPECT_EQ(report.ok(), 20u) << report.Table();
  EXPECT_EQ(report.sent(), 20u);
  EXPECT_EQ(report.output_tokens(), 60u);
  EXPECT_LE(server.connections(), 4u);
  EXPECT_EQ(nlohmann::json::parse(report.Json())["in_flight"]["peak"], 4);
  EXPECT_TRUE(server.requests()[0].head.starts_with("POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:"));
}

TEST(Driver, TheSeedDecidesWhatIsSent) {
  FakeServer one(GoodReply), two(GoodReply), three(GoodReply);
  RunOk(Options(one));
  RunOk(Options(two));
  LoadOptions other = Options(three);
  other.seed = 2;
  RunOk(other);
  EXPECT_EQ(Bodies(&one), Bodies(&two));
  EXPECT_NE(Bodies(&one), Bodies(&three));
}

TEST(Driver, AsksForTheModelAndMeasuresTokensPerWord) {
  FakeServer server([](const FakeRequest& request) {
    if (request.head.starts_with("GET ")) return GoodReply(request);
    const auto json = nlohmann::json::parse(request.body);
    const std::string prompt = json["messages"][0]["content"];
    const auto words = static_cast<uint64_t>(std::ranges::count(prompt, ' ') + 1);
    return FakeReply{StreamResponse({"a"}, 2 * words + 6), FakeReply::Then::kKeep, 0};
  });
  LoadOptions options = Options(server);
  options.model.clear();
  options.tokens_per_word = 0;
  options.prompt_tokens = 106;
  options.api_key = "secret";
  const LoadReport report = RunOk(options);
  EXPECT_EQ(report.prompt_tokens(), 20u * 106) << report.Table();
  for (const FakeRequest& request : server.requests()) {
    EXPECT_NE(request.head.find("\r\nAuthorization: Bearer secret"), std::string::npos);
  }
  EXPECT_EQ(nlohmann::json::parse(server.requests().back().body)["model"], "fake");
}

TEST(Driver, EveryTurnSendsTheServersOwnAnswers) {
  FakeServer server(GoodReply);
  LoadOptions options = Options(server);
  options.turns = 3;
  options.requests = 6;
  options.clients = 1;
  options.think_time = 0.001;
  EXPECT_EQ(RunOk(options).ok(), 6u);
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    const auto messages = nlohmann::json::parse(requests[i].body)["messages"];
    ASSERT_EQ(messages.size(), 2 * (i % 3) + 1);
    for (size_t m = 1; m < messages.size(); m += 2) EXPECT_EQ(messages[m]["content"], "one two three");
    if (i % 3 == 0) continue;
    EXPECT_EQ(messages[0], nlohmann::json::parse(requests[i - 1].body)["messages"][0]);
  }
}

TEST(Driver, ReplaysATrace) {
  FakeServer server(GoodReply);
  const std::string path = testing::TempDir() + "/load_driver_trace.jsonl";
  std::string trace;
  for (int i = 0; i < 10; ++i) {
    trace += R"({"timestamp":)" + std::to_string(i * 10) + R"(,"input_length":600,"output_length":3,"hash_ids":[1,)" +
             std::to_string(i + 2) + "]}\n";
  }
  ASSERT_TRUE(WriteFileAtomically(path, trace).ok());
  LoadOptions options = Options(server);
  options.clients = 0;
  options.requests = 0;
  options.trace = path;
  options.endpoint = "completions";
  EXPECT_EQ(RunOk(options).ok(), 10u);
  std::set<std::string> beginnings, prompts;
  for (const FakeRequest& request : server.requests()) {
    const std::string prompt = nlohmann::json::parse(request.body)["prompt"];
    EXPECT_EQ(std::ranges::count(prompt, ' '), 599);
    beginnings.insert(prompt.substr(0, 1500));
    prompts.insert(prompt);
  }
  EXPECT_EQ(beginnings.size(), 1u);
  EXPECT_EQ(prompts.size(), 10u);
}

TEST(Driver, ArrivalsOfAnOpenLoopDoNotWaitForAnswers) {
  FakeServer server(GoodReply, 20);  // answers none before all have arrived
  LoadOptions options = Options(server);
  options.clients = 0;
  options.rate = 1000;
  EXPECT_EQ(RunOk(options).ok(), 20u);
}

TEST(Driver, AThousandStreamsAtOnce) {
  FakeServer server(GoodReply, 1000);
  LoadOptions options = Options(server);
  options.clients = 1000;
  options.requests = 2000;
  options.timeout = 120;
  const LoadReport report = RunOk(options);
  EXPECT_EQ(report.ok(), 2000u) << report.Table();
  EXPECT_EQ(nlohmann::json::parse(report.Json())["in_flight"]["peak"], 1000);
}

TEST(Driver, FailuresAreCountedByKind) {
  LeapingClock clock;
  FakeServer server([&clock](const FakeRequest& request) -> FakeReply {
    switch (request.number) {
      case 0: return {JsonResponse(503, R"({"error":{"message":"busy"}})"), FakeReply::Then::kKeep, 0};
      case 1: return {"garbage\r\n\r\n", FakeReply::Then::kClose, 0};
      case 2: return {ChunkedStream(PieceEvent("a")), FakeReply::Then::kKeep, 0};
      case 3: return {ChunkedStream("data: {\"error\":{\"message\":\"lost\"}}\n\n"), FakeReply::Then::kKeep, 0};
      case 4: return {StreamResponse({"a", "b"}, 5), FakeReply::Then::kKeep, 1};
      default: clock.Leap(std::chrono::hours(1)); return {"", FakeReply::Then::kHang, 0};
    }
  });
  LoadOptions options = Options(server);
  options.clients = 1;
  options.requests = 6;
  const LoadReport report = RunOk(options, clock);
  EXPECT_EQ(report.count(Outcome::kStatus), 1u) << report.Table();
  EXPECT_EQ(report.count(Outcome::kMalformed), 1u);
  EXPECT_EQ(report.count(Outcome::kIncomplete), 1u);
  EXPECT_EQ(report.count(Outcome::kServerError), 1u);
  EXPECT_EQ(report.count(Outcome::kTimeout), 1u);
  EXPECT_EQ(report.ok(), 1u);
  EXPECT_EQ(report.statuses().at(503), 1u);
}

TEST(Driver, AConnectionThatTheServerClosedWhileIdleIsReplaced) {
  FakeServer server([](const FakeRequest& request) {
    FakeReply reply = GoodReply(request);
    reply.then = FakeReply::Then::kClose;  // without saying so
    return reply;
  });
  EXPECT_EQ(RunOk(Options(server)).ok(), 20u);
}

TEST(Driver, NoServerIsAnErrorAtOnce) {
  uint16_t port = 0;
  { port = FakeServer(GoodReply).port(); }
  LoadOptions options;
  options.url = "http://127.0.0.1:" + std::to_string(port);
  const SteadyClock clock;
  EXPECT_EQ(RunLoad(options, clock, kGoOn).status().code(), Code::kUnavailable);
  options.model = "fake";
  options.tokens_per_word = 1;
  options.requests = 5;
  const LoadReport report = RunOk(options);
  EXPECT_EQ(report.count(Outcome::kConnect), 5u);
}

TEST(Driver, TheCallerCanEndIt) {
  FakeServer server([](const FakeRequest&) { return FakeReply{"", FakeReply::Then::kHang, 0}; });
  LoadOptions options = Options(server);
  const SteadyClock clock;
  const Result<LoadReport> report = RunLoad(options, clock, [&](double) { return server.requests().size() < 4; });
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report.value().count(Outcome::kAborted), 4u);
}

TEST(Driver, OptionsWithoutSenseAreRefusedTogether) {
  LoadOptions options;
  options.endpoint = "embeddings";
  options.clients = 1;
  options.rate = 1;
  options.api_key = "a\r\nb";
  const SteadyClock clock;
  const Status status = RunLoad(options, clock, kGoOn).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  for (const char* part : {"--url", "--endpoint", "--clients", "--api-key"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << part;
  }
}

// A good reply with some bytes changed, removed, doubled or cut off.
FakeReply OddReply(uint64_t seed, const FakeRequest& request) {
  SplitMix64 random(seed * 1000 + request.number);
  FakeReply reply = GoodReply(request);
  for (uint64_t i = random.Below(6); i > 0 && !reply.bytes.empty(); --i) {
    const size_t at = random.Below(reply.bytes.size());
    switch (random.Below(4)) {
      case 0: reply.bytes[at] = static_cast<char>(random()); break;
      case 1: reply.bytes.erase(at, random.Below(40)); break;
      case 2: reply.bytes.insert(at, reply.bytes.substr(random.Below(reply.bytes.size()), random.Below(200))); break;
      default: reply.bytes.resize(at);
    }
  }
  constexpr FakeReply::Then kThen[] = {FakeReply::Then::kKeep, FakeReply::Then::kClose, FakeReply::Then::kClose};
  reply.then = kThen[random.Below(std::size(kThen))];
  reply.piece_bytes = static_cast<uint32_t>(random.Below(30));
  return reply;
}

TEST(Driver, OddBytesOfAServerAreCountedAndNothingElse) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    FakeServer server([seed](const FakeRequest& request) { return OddReply(seed, request); });
    LoadOptions options = Options(server);
    options.requests = 300;
    options.clients = 30;
    options.timeout = 0.5;
    options.turns = 2;
    const LoadReport report = RunOk(options);
    EXPECT_EQ(report.sent(), 300u);
    EXPECT_EQ(report.ok() + report.failed(), 300u);
    EXPECT_GT(report.ok(), 0u);
    EXPECT_GT(report.failed(), 0u);
  }
}

}  // namespace
}  // namespace cachalot::load
