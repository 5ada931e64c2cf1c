// What `advise --url` learns of servers: real ones over a fake model, and some that are none.
#include "cli/advise_server.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_system.h"
#include "base/metrics.h"
#include "cli/testing/served_fake.h"
#include "load/testing/fake_server.h"
#include "server/testing/test_client.h"
#include "sim/read_trace.h"

namespace cachalot::cli {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ServedFake;

Result<ServerReading> ReadAt(const std::string& url, AdviseOptions options = {}) {
  options.url = url;
  return ServerReading::Read(options);
}

std::string Complaint(const std::string& url, AdviseOptions options = {}) {
  return ReadAt(url, std::move(options)).status().message();
}

void Ask(const ServedFake& served, const std::string& prompt, int max_tokens = 4) {
  const std::string body =
      R"({"prompt":")" + prompt + R"(","ignore_eos":true,"max_tokens":)" + std::to_string(max_tokens) + "}";
  ASSERT_EQ(server::TestClient(served.port()).Post("/v1/completions", body).status, 200);
}

plan::Setting SettingOfFake(uint64_t slots) {
  const KvLayout layout = exec::FakeExecutor::LayoutFor(ServedFake::kModel);
  plan::Setting setting;
  setting.kv = {.layers = {{.kv_heads = 1, .k_dim = static_cast<uint32_t>(layout.slot_bytes / 64)}},
                .type = KvType::kF32,
                .block_tokens = 16};
  setting.context_tokens = 4096;
  setting.slots = slots;
  setting.slot_bytes = layout.slot_bytes;
  setting.curve = {1e-3, 1e-5, 0, 0, 0};
  return setting;
}

TEST(AdviseServer, TakesModelPoolAndCostOfStepsFromMetricsAndModels) {
  ServedFake served({.slots = 300});
  EXPECT_THAT(ReadAt(served.url())->Flags({}).status().message(), HasSubstr("has not run the model yet"));
  Ask(served, std::string(100, 'x'));
  const Result<ServerReading> reading = ReadAt(served.url() + "/v1");
  ASSERT_TRUE(reading.ok()) << reading.status().message();
  const Result<Arguments> flags = reading->Flags({});
  ASSERT_TRUE(flags.ok()) << flags.status().message();
  EXPECT_THAT(*flags, Contains("--model=fake"));
  EXPECT_THAT(*flags, Contains("--context=4096"));
  const uint64_t bytes = 300 * exec::FakeExecutor::LayoutFor(ServedFake::kModel).slot_bytes;
  EXPECT_THAT(*flags, Contains("--kv-memory=" + std::to_string(bytes)));
  EXPECT_THAT(*flags, Contains(HasSubstr("--step-curve=")));
  EXPECT_THAT(*flags, Not(Contains(HasSubstr("--eviction"))));
  EXPECT_THAT(reading->Unknown(), HasSubstr("--admin-key"));
  EXPECT_THAT(*reading->Flags({.profile = "p"}), Not(Contains(HasSubstr("--step-curve="))));
  EXPECT_TRUE(reading->CheckPool(SettingOfFake(300)).ok());
  EXPECT_THAT(reading->CheckPool(SettingOfFake(301)).message(), HasSubstr("has 300 blocks of"));
}

TEST(AdviseServer, TakesSettingsFromTheAdministration) {
  ServedFake::Options options;
  options.keys.SetAdmin("root");
  options.settings = ParseJson(R"({"model":{"kv-type":"f32","block-tokens":32,"threads":7},
      "tiers":{"disk-path":"/kv","disk-size":"2 GiB"},"engine":{"eviction":"lru","prefix-cache":false,"step-rows":64}})")
                         .value();
  ServedFake served(std::move(options));
  Ask(served, "x");
  const Result<ServerReading> reading = ReadAt(served.url(), {.admin_key = "root"});
  ASSERT_TRUE(reading.ok()) << reading.status().message();
  const Arguments flags = reading->Flags({}).value();
  for (const char* flag : {"--kv-format=f32", "--kv-block-tokens=32", "--disk-size=2 GiB", "--eviction=lru",
                           "--no-prefix-cache", "--step-rows=64"}) {
    EXPECT_THAT(flags, Contains(flag));
  }
  EXPECT_THAT(flags, Not(Contains(HasSubstr("threads"))));
  EXPECT_EQ(reading->Unknown(), "");
}

TEST(AdviseServer, SaysWhichKeyIsMissingOrWrong) {
  ServedFake::Options options;
  options.keys.AddSingle("one");
  ServedFake served(std::move(options));
  const Result<ServerReading> without = ReadAt(served.url());
  ASSERT_TRUE(without.ok()) << without.status().message();
  EXPECT_THAT(without->Flags({}).status().message(), HasSubstr("expected --api-key, or --model and --context"));
  EXPECT_THAT(Complaint(served.url(), {.api_key = "two"}), HasSubstr("the API key is not taken"));
  EXPECT_THAT(Complaint(served.url(), {.api_key = "one", .admin_key = "root"}),
              HasSubstr("was started without --admin-key"));
  server::ApiKeys keys;
  keys.SetAdmin("root");
  ServedFake administered({.keys = keys});
  EXPECT_THAT(Complaint(administered.url(), {.admin_key = "toor"}), HasSubstr("the admin key is not taken"));
}

TEST(AdviseServer, JudgesWhatPassedBetweenTwoReadings) {
  ServedFake served({});
  Result<ServerReading> idle = ReadAt(served.url());
  ASSERT_TRUE(idle.ok());
  const Result<plan::Report> nothing = idle->Watch(0.1);
  ASSERT_TRUE(nothing.ok()) << nothing.status().message();
  EXPECT_THAT(nothing->answers[0], HasSubstr("no request came or ran"));
  Result<ServerReading> busy = ReadAt(served.url());
  Ask(served, std::string(100, 'x'));
  Ask(served, std::string(100, 'x'));
  const Result<plan::Report> some = busy->Watch(0.1);
  ASSERT_TRUE(some.ok()) << some.status().message();
  EXPECT_THAT(some->answers[0], HasSubstr("Nothing binds: nobody waited"));
  EXPECT_THAT(some->answers.back(), HasSubstr("cachalot serve fake --record FILE"));
  EXPECT_THAT(some->answers.back(), HasSubstr("cachalot advise FILE --url " + served.url()));
  EXPECT_THAT(plan::ReportAsText(*some), ::testing::ContainsRegex("requests answered +2 +2\n"));
  EXPECT_THAT(busy->Watch(-1).status().message(), HasSubstr("--seconds is -1"));
}

TEST(AdviseServer, ARecordsSimulationFindsWhatTheServerFound) {
  const std::string path = ::testing::TempDir() + "/advise_server_test_record.jsonl";
  std::filesystem::remove(path);
  const std::unique_ptr<FileSystem> files = DiskFileSystem();
  const SteadyClock clock;
  const auto record = engine::RequestRecord::Create(*files, path, 16, clock.Now()).value();
  ServedFake served({.slots = 60, .record = record.get()});
  for (int i = 0; i < 12; ++i) Ask(served, std::string(200 + 40 * (i % 3), 'a') + std::to_string(i % 5), 8);
  const Result<ServerReading> reading = ReadAt(served.url());
  ASSERT_TRUE(reading.ok()) << reading.status().message();
  served.Stop();
  ASSERT_TRUE(record->Close().ok());
  const Result<sim::TraceFile> trace = sim::ReadTraceFile(path, {});
  ASSERT_TRUE(trace.ok()) << trace.status().message();
  EXPECT_EQ(trace->trace.requests.front().asked_tokens, 8u);
  const Result<sim::Agreement> agreement = reading->Compare(trace->trace, SettingOfFake(60), {});
  ASSERT_TRUE(agreement.ok()) << agreement.status().message();
  for (const char* what : {"requests answered", "prompt tokens found", "prompt tokens computed", "tokens generated"}) {
    const auto row = std::ranges::find(agreement->rows, what, &sim::AgreementRow::what);
    ASSERT_NE(row, agreement->rows.end()) << what;
    EXPECT_GT(row->above, 0) << what;
    EXPECT_EQ(row->above, row->simulated) << what;
  }
  EXPECT_EQ(agreement->recorded_requests, 12u);
}

TEST(AdviseServer, TellsAServerThatIsNoCachalotFromOneThatIsNotThere) {
  EXPECT_THAT(Complaint("http://127.0.0.1:1"), HasSubstr("http://127.0.0.1:1: Connection refused"));
  EXPECT_THAT(Complaint("localhost:80"), HasSubstr("expected http://HOST"));
  const auto with_metrics = [](const std::string& text) {
    load::FakeServer other([&](const load::FakeRequest&) { return load::FakeReply{load::JsonResponse(200, text)}; });
    return Complaint(other.url());
  };
  EXPECT_THAT(with_metrics("vllm:num_requests_running 1\n"), HasSubstr("not that of a Cachalot of this version"));
  EXPECT_THAT(with_metrics("<!doctype html>\n"), HasSubstr("line 1: expected the name of a metric"));
  load::FakeServer nothing([](const load::FakeRequest&) { return load::FakeReply{load::JsonResponse(404, "{}")}; });
  EXPECT_THAT(Complaint(nothing.url()), HasSubstr("no Cachalot answers there: GET /metrics gives HTTP 404"));
}

TEST(AdviseServer, NoticesARestartBetweenTwoReadings) {
  Metrics before, after;
  before.Add(Counter::kSteps, 10);
  int scrapes = 0;
  load::FakeServer restarted([&](const load::FakeRequest& request) {
    if (request.head.find("/v1/models") != std::string::npos) return load::FakeReply{load::JsonResponse(401, "{}")};
    return load::FakeReply{load::JsonResponse(200, (scrapes++ == 0 ? before : after).Exposition())};
  });
  Result<ServerReading> reading = ReadAt(restarted.url());
  ASSERT_TRUE(reading.ok()) << reading.status().message();
  EXPECT_THAT(reading->Watch(0.1).status().message(), HasSubstr("the server began anew"));
}

}  // namespace
}  // namespace cachalot::cli
