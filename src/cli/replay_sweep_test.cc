#include "cli/replay_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/replay_run.h"
#include "sim/workload.h"

namespace cachalot::cli {
namespace {

using testing::HasSubstr;

sim::Trace Chat() { return sim::MakeWorkload("chat", {.requests = 80, .block_tokens = 64}).value(); }

Result<Json::Array> Sweep(const std::string& sweep, Arguments more = {}) {
  Arguments arguments = {"--workload=chat", "--sweep=" + sweep, "--threads=2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  ReplaySettings settings;
  const Result<bool> read = ReadSettings(arguments, &settings);
  EXPECT_TRUE(read.ok()) << read.status().message();
  return SweepReplay(Chat(), arguments, settings);
}

TEST(ReplaySweep, HasARowForEachCombinationInOrder) {
  const Result<Json::Array> rows = Sweep("policy=lru,fifo; capacity-blocks = 20, 200");
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  std::string order;
  for (const Json& row : *rows) {
    order += *row.Find("policy")->AsString() + " " + *row.Find("capacity-blocks")->AsString() + ", ";
    EXPECT_EQ(row.Find("capacity_blocks"), nullptr);  // it is there once
  }
  EXPECT_EQ(order, "lru 20, lru 200, fifo 20, fifo 200, ");
  ReplaySettings one;
  ASSERT_TRUE(ReadSettings({"--workload=chat", "--policy=fifo", "--capacity-blocks=20"}, &one).ok());
  const Result<Replayed> alone = Replay(Chat(), one);
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(*(*rows)[2].Find("block_hit_rate"), *Json(alone->figures).Find("block_hit_rate"));
}

TEST(ReplaySweep, VariesSettingsOfTheEngineToo) {
  const Result<Json::Array> rows =
      Sweep("eviction=lru,cost; kv-blocks=400", {"--engine", "--step-curve=0.01,5e-5,4e-9,0,2e-5"});
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  ASSERT_EQ(rows->size(), 2u);
  for (const Json& row : *rows) {
    EXPECT_EQ(*row.Find("served_requests")->AsInt() + *row.Find("refused_requests")->AsInt(), 80);
    EXPECT_GT(*row.Find("served_requests")->AsInt(), 60);
  }
  EXPECT_NE((*rows)[0].Find("cached_tokens")->Dump(), (*rows)[1].Find("cached_tokens")->Dump());
}

TEST(ReplaySweep, SaysWhatIsWrongWithIt) {
  const auto message = [](const std::string& sweep, Arguments more = {}) {
    return Sweep(sweep, std::move(more)).status().message();
  };
  EXPECT_THAT(message("policy"), HasSubstr("expected name=value,value,... between semicolons, got \"policy\""));
  EXPECT_THAT(message("=lru"), HasSubstr("got \"=lru\""));
  EXPECT_THAT(message("polcy=lru"), HasSubstr("polcy"));
  EXPECT_THAT(message("capacity-blocks=many"), HasSubstr("capacity-blocks"));
  EXPECT_THAT(message("policy=never; capacity-blocks=5"), HasSubstr("never"));
  EXPECT_THAT(message("policy=lru", {"--request-log=/tmp/x"}), HasSubstr("--request-log"));
  EXPECT_EQ(message("seed=1; seed=2"), "--sweep: seed is there twice");
  for (const std::string name : {"json", "html", "sweep", "engine", "config", "input-log", "kv-blocks"}) {
    EXPECT_EQ(message(name + "=1"), "--sweep: " + name + " is no setting that makes another replay without --engine");
  }
  EXPECT_THAT(message("policy=lru", {"--engine"}), HasSubstr("policy is no setting"));
  std::string many;
  for (const std::string name : {"seed", "requests", "capacity-blocks", "ghosts-per-block", "warm-up-requests"}) {
    many += name + "=1,2,3,4,5,6,7,8,9;";
  }
  EXPECT_THAT(message(many), HasSubstr("more than 10000 combinations"));
}

TEST(EngineReplay, RefusesWhatNoSimulationCouldBeginWith) {
  const auto message = [](auto change) {
    EngineReplayOptions options{.engine = true, .step_curve = "0.01,5e-5,4e-9,0,2e-5", .kv_blocks = 100};
    change(options);
    return EngineReplay(Chat(), options, {}).status().message();
  };
  EXPECT_EQ(message([](EngineReplayOptions&) {}), "");
  EXPECT_THAT(message([](auto& o) { o.step_curve = "1,2"; }), HasSubstr("expected 5 numbers"));
  EXPECT_THAT(message([](auto& o) { o.step_curve = "1,2,3,4,5,6"; }), HasSubstr("expected 5 numbers"));
  EXPECT_THAT(message([](auto& o) { o.step_curve = ""; }), HasSubstr("either --profile or --step-curve"));
  EXPECT_THAT(message([](auto& o) { o.step_curve = "nan,0,0,0,0"; }), HasSubstr("step curve"));
  EXPECT_THAT(message([](auto& o) { o.kv_blocks = 0; }), HasSubstr("--kv-blocks is 0"));
  EXPECT_THAT(message([](auto& o) { o.kv_block_tokens = 20; }), HasSubstr("--kv-block-tokens is 20"));
  EXPECT_THAT(message([](auto& o) { o.context = 0; }), HasSubstr("--context is 0"));
  EXPECT_THAT(message([](auto& o) { o.kv_format = "f16"; }), HasSubstr("--kv-format is that of --kv-model"));
  EXPECT_THAT(message([](auto& o) { o.request_log = "/no/such/folder/x"; }), HasSubstr("/no/such/folder"));
}

}  // namespace
}  // namespace cachalot::cli
