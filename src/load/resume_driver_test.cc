#include "load/resume_driver.h"

#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "load/testing/fake_server.h"

namespace cachalot::load {
namespace {

constexpr bool (*kGoOn)(double) = [](double) { return true; };
constexpr Status (*kNothing)() = [] { return OkStatus(); };

std::string TargetOf(const FakeRequest& request) {
  const size_t begin = request.head.find(' ') + 1;
  return request.head.substr(begin, request.head.find(' ', begin) - begin);
}

bool Is(const FakeRequest& request, std::string_view target) { return TargetOf(request) == target; }

FakeReply Says(int status, const std::string& body) { return {JsonResponse(status, body), FakeReply::Then::kKeep, 0}; }

// Has no sessions and no slots.
FakeReply PlainReply(const FakeRequest& request) {
  if (TargetOf(request).starts_with("/v1/kv") || TargetOf(request).starts_with("/slots")) return Says(404, "{}");
  return GoodReply(request);
}

FakeReply SessionsReply(const FakeRequest& request) {
  const std::string target = TargetOf(request);
  if (!target.starts_with("/v1/kv/sessions")) return GoodReply(request);
  if (target.ends_with("/suspend")) return Says(200, R"({"durable":true})");
  return Says(200, R"({"tiers":{"hot":{"tokens":1},"host":{"tokens":0},"disk":{"tokens":40}}})");
}

ResumeOptions Options(const FakeServer& server) {
  ResumeOptions options;
  options.url = server.url();
  options.model = "fake";
  options.seed = 7;
  options.tokens_per_word = 1;
  options.conversations = 2;
  options.prompt_tokens = 10;
  options.turn_tokens = 3;
  options.timeout = 30;
  return options;
}

Result<ResumeReport> RunIt(const ResumeOptions& options) {
  return RunResume(options, SteadyClock(), {kGoOn, kNothing, kNothing});
}

std::vector<nlohmann::json> Prompts(FakeServer* server) {
  std::vector<nlohmann::json> bodies;
  for (const FakeRequest& request : server->requests()) {
    if (Is(request, "/v1/completions")) bodies.push_back(nlohmann::json::parse(request.body));
  }
  return bodies;
}

TEST(ResumeDriver, AConversationComesBackWithTheServersOwnAnswer) {
  FakeServer server(PlainReply);
  ResumeOptions options = Options(server);
  options.rests = "hot";
  const Result<ResumeReport> report = RunIt(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->count(Rest::kCold), 2u);
  EXPECT_EQ(report->count(Rest::kHot), 2u);
  const std::vector<nlohmann::json> bodies = Prompts(&server);
  ASSERT_EQ(bodies.size(), 6u);
  for (size_t i = 2; i < 6; i += 2) {
    const std::string first = bodies[i]["prompt"], second = bodies[i + 1]["prompt"];
    EXPECT_TRUE(second.starts_with(first + "one two three")) << second;
    EXPECT_EQ(bodies[i]["max_tokens"], 8);
    EXPECT_FALSE(bodies[i].contains("kv"));
  }
  const std::string cold = bodies[0]["prompt"];
  EXPECT_EQ(std::ranges::count(cold, ' ') + 1, 10 + 8 + 3);
  EXPECT_NE(bodies[0]["prompt"], bodies[1]["prompt"]);
}

TEST(ResumeDriver, SessionsAreSuspendedWhereTheServerHasThem) {
  FakeServer server(SessionsReply);
  ResumeOptions options = Options(server);
  options.rests = "suspended";
  const Result<ResumeReport> report = RunIt(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  std::vector<std::string> targets;
  for (const FakeRequest& request : server.requests()) targets.push_back(TargetOf(request));
  EXPECT_EQ(targets,
            (std::vector<std::string>{"/v1/kv/sessions", "/v1/completions", "/v1/completions", "/v1/completions",
                                      "/v1/kv/sessions/bench-resume-7-2/suspend", "/v1/kv/sessions/bench-resume-7-2",
                                      "/v1/completions", "/v1/completions", "/v1/kv/sessions/bench-resume-7-3/suspend",
                                      "/v1/kv/sessions/bench-resume-7-3", "/v1/completions"}));
  EXPECT_EQ(Prompts(&server).back()["kv"]["session"], "bench-resume-7-3");
  const nlohmann::json told = nlohmann::json::parse(report->Json());
  EXPECT_EQ(told["way"], "cachalot");
  EXPECT_EQ(told["rests"][1]["rest"], "suspended");
  EXPECT_EQ(told["rests"][1]["places"], nlohmann::json::parse(R"({"disk":2})"));
}

TEST(ResumeDriver, SlotsAreSavedErasedAndRestored) {
  FakeServer server([](const FakeRequest& request) {
    return TargetOf(request).starts_with("/slots") ? Says(200, "{}") : GoodReply(request);
  });
  ResumeOptions options = Options(server);
  options.way = "llama-slots";
  options.conversations = 1;
  options.rests = "suspended";
  const Result<ResumeReport> report = RunIt(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  std::vector<std::string> asked;
  for (const FakeRequest& request : server.requests())
    asked.push_back(TargetOf(request) + (Is(request, "/v1/completions") ? "" : request.body));
  EXPECT_EQ(asked, (std::vector<std::string>{
                       "/v1/completions", "/v1/completions",
                       R"(/slots/0?action=save{"filename":"bench-resume-7-1.bin"})", "/slots/0?action=erase{}",
                       R"(/slots/0?action=restore{"filename":"bench-resume-7-1.bin"})", "/v1/completions"}));
  EXPECT_EQ(Prompts(&server).back()["id_slot"], 0);
}

TEST(ResumeDriver, OthersPushAndTheServerRestartsBetweenTwoTurns) {
  FakeServer server(SessionsReply);
  ResumeOptions options = Options(server);
  options.rests = "pushed,restarted";
  options.push_tokens = 35;
  int restarts = 0, returns = 0;
  const auto restart = [&] {
    ++restarts;
    return OkStatus();
  };
  const auto before_return = [&] {
    ++returns;
    return OkStatus();
  };
  const Result<ResumeReport> report = RunResume(options, SteadyClock(), {kGoOn, restart, before_return});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(restarts, 1);
  EXPECT_EQ(returns, 4);
  EXPECT_EQ(Prompts(&server).size(), 2u + (2 + 4 + 2) + (2 + 2));
  EXPECT_EQ(report->count(Rest::kPushed), 2u);
  EXPECT_EQ(report->count(Rest::kRestarted), 2u);
}

TEST(ResumeDriver, TheFirstFailureEndsTheRunAndIsNamed) {
  FakeServer server([](const FakeRequest& request) {
    if (TargetOf(request).ends_with("/suspend")) return Says(409, R"({"error":{"message":"is in use"}})");
    return SessionsReply(request);
  });
  ResumeOptions options = Options(server);
  options.rests = "suspended";
  const Result<ResumeReport> report = RunIt(options);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.status().message().find("suspended: suspending 2"), std::string::npos) << report.status().message();
  EXPECT_NE(report.status().message().find("is in use"), std::string::npos);
}

TEST(ResumeDriver, AServerWithoutSessionsIsNotSuspended) {
  FakeServer server(PlainReply);
  ResumeOptions options = Options(server);
  options.rests = "suspended";
  EXPECT_FALSE(RunIt(options).ok());
  options.way = "cachalot";
  options.rests = "hot";
  EXPECT_NE(RunIt(options).status().message().find("the list of sessions"), std::string::npos);
}

TEST(ResumeDriver, EndsWhenItIsToldTo) {
  FakeServer server(PlainReply);
  int calls = 0;
  const auto go_on = [&](double) { return ++calls < 3; };
  EXPECT_FALSE(RunResume(Options(server), SteadyClock(), {go_on, kNothing, kNothing}).ok());
}

TEST(ResumeOptions, NonsenseIsRefusedWithAllThatIsWrong) {
  ResumeOptions options;
  options.url = "http://127.0.0.1:1";
  EXPECT_TRUE(Validate(options).ok());
  options.rests = "hot,warm,pushed";
  options.way = "magic";
  options.conversations = 0;
  options.prompt_tokens = 0;
  options.idle = -1;
  const std::string message = Validate(options).message();
  for (const char* flag :
       {"--rests has warm", "--way", "--conversations", "--push-tokens", "--idle", "--prompt-tokens"}) {
    EXPECT_NE(message.find(flag), std::string::npos) << flag << " in " << message;
  }
  options = {.url = "http://127.0.0.1:1", .way = "none"};
  EXPECT_NE(Validate(options).message().find("suspended"), std::string::npos);
}

TEST(ResumeOptions, ColdIsAlwaysMeasuredFirstAndNothingTwice) {
  ResumeOptions options;
  options.rests = "restarted,hot,cold,hot";
  EXPECT_EQ(RestsOf(options), (std::vector<Rest>{Rest::kCold, Rest::kRestarted, Rest::kHot}));
}

}  // namespace
}  // namespace cachalot::load
