#include "cli/replay_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "cli/replay_machine.h"
#include "cli/replay_run.h"
#include "cost/calibration_profile.h"
#include "exec/sim/sim_executor.h"
#include "plan/formats.h"
#include "sim/workload.h"

namespace cachalot::cli {
namespace {

using ::testing::HasSubstr;

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

TEST(ReplaySweep, OfTheSameMemoryFormatsAndSizesOfBlocksMakeOtherNumbersOfBlocks) {
  const Result<Json::Array> rows = Sweep("kv-memory=512MiB,1GiB; kv-block-tokens=16,32; kv-format=f16,int8",
                                         {"--engine", "--step-curve=0.01,5e-5,4e-9,0,2e-5", "--kv-model=llama-3.1-8b"});
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  const double bits = plan::FindKvFormat("int8").value().bits();
  const auto figure = [&](size_t row, const char* name) { return *(*rows)[row].Find(name)->AsInt(); };
  std::vector<int64_t> blocks, expected;
  for (const uint64_t memory : {uint64_t{512} << 20, uint64_t{1} << 30}) {
    for (const uint64_t tokens : {16u, 32u}) {
      for (const double token_bytes : {131'072.0, 131'072 * bits / 16}) {
        expected.push_back(
            static_cast<int64_t>(static_cast<double>(memory) / (static_cast<double>(tokens) * token_bytes)));
        blocks.push_back(figure(blocks.size(), "kv_blocks"));
      }
    }
  }
  EXPECT_EQ(blocks, expected);
  for (size_t f16 = 0; f16 < rows->size(); f16 += 2) {
    EXPECT_GT(figure(f16 + 1, "cached_tokens"), figure(f16, "cached_tokens")) << blocks[f16];
  }
}

TEST(ReplaySweep, SaysWhatIsWrongWithIt) {
  const auto message = [](const std::string& sweep, Arguments more = {}) {
    return Sweep(sweep, std::move(more)).status().message();
  };
  EXPECT_THAT(message("policy"), HasSubstr("expected name=value,value,... between semicolons, got \"policy\""));
  EXPECT_THAT(message(" ; "), HasSubstr("between semicolons, got nothing"));
  EXPECT_THAT(message("=lru"), HasSubstr("got \"=lru\""));
  EXPECT_THAT(message("polcy=lru"), HasSubstr("polcy"));
  EXPECT_THAT(message("capacity-blocks=many"), HasSubstr("capacity-blocks"));
  EXPECT_THAT(message("policy=never; capacity-blocks=5"), HasSubstr("never"));
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
  EXPECT_EQ(message([](auto& o) { o.kv_memory.bytes = 1 << 21; }), "");  // one block
  EXPECT_EQ(message([](auto& o) { o.kv_memory.bytes = 1 << 20; }),
            "--kv-memory of 1 MiB has room for 0 blocks of 2 MiB; expected 1 to 67108864");
  EXPECT_THAT(message([](auto& o) { o.kv_memory.bytes = uint64_t{1} << 60; }), HasSubstr("for 549755813888 blocks of"));
  EXPECT_THAT(message([](auto& o) { o.kv_block_tokens = 20; }), HasSubstr("--kv-block-tokens is 20"));
  EXPECT_THAT(message([](auto& o) { o.context = 0; }), HasSubstr("--context is 0"));
  EXPECT_THAT(message([](auto& o) { o.kv_format = "f16"; }), HasSubstr("--kv-format is that of --kv-model"));
  EXPECT_THAT(message([](auto& o) { o.request_log = "/no/such/folder/x"; }), HasSubstr("/no/such/folder"));
}

TEST(EngineReplay, TakesEveryFormatOfKvThatThePlannerKnows) {
  EngineReplayOptions options{.engine = true, .step_curve = "0.01,5e-5,4e-9,0,2e-5", .kv_blocks = 500};
  options.kv_model = "llama-3.1-8b";
  for (const plan::Format& format : plan::KvFormats()) {
    options.kv_format = format.name;
    const KvLayout layout = exec::SimExecutor::LayoutFor(MachineOf(options).value().model);
    const double bytes = static_cast<double>(layout.slot_bytes * layout.groups.size()) / 16;
    EXPECT_DOUBLE_EQ(bytes, 131'072 * format.bits() / 16) << format.name;
  }
  options.host_blocks = 2000;
  options.host_link.bytes = 10'000'000'000;
  const auto moved = [&](const char* format) {
    options.kv_format = format;
    return static_cast<double>(EngineReplay(Chat(), options, {}).value().report.moved.from_pool);
  };
  EXPECT_GT(moved("int8"), 0);
  EXPECT_LT(moved("int8"), moved("f16") * 0.75);  // what is smaller is worth moving more often
  options.kv_format = "int7";
  EXPECT_THAT(EngineReplay(Chat(), options, {}).status().message(),
              HasSubstr("--kv-format: KV format: \"int7\" is not known, expected one of f32, f16"));
}

TEST(EngineReplay, AContextIsThatOfTheModelAtMost) {
  EngineReplayOptions options{.engine = true, .step_curve = "0.01,5e-5,4e-9,0,2e-5", .kv_blocks = 100};
  EXPECT_EQ(MachineOf(options).value().model.context_tokens, kUsualContext);
  options.kv_model = "llama-2-7b";
  EXPECT_EQ(MachineOf(options).value().model.context_tokens, 4096u);
  options.context = 100;
  EXPECT_EQ(MachineOf(options).value().model.context_tokens, 100u);
  options.context = 4097;
  EXPECT_EQ(MachineOf(options).status().message(),
            "--context is 4097; expected at most 4096, the context of llama-2-7b");
}

TEST(EngineReplay, WhatIsRefusedHasAReasonAndNoTimes) {
  EngineReplayOptions options{.engine = true, .step_curve = "0.01,5e-5,4e-9,0,2e-5", .kv_blocks = 1};
  const Result<EngineReplayed> none = EngineReplay(Chat(), options, {});
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_EQ(none->report.served, 0u);
  const Json figures(EngineFigures(none->report));
  EXPECT_THAT(*figures.Find("first_refusal")->AsString(), HasSubstr("KV blocks"));
  for (const char* name : {"ttft_p50_seconds", "itl_p99_seconds", "e2e_p90_seconds", "token_hit_rate"}) {
    EXPECT_TRUE(figures.Find(name)->is_null()) << name;
  }
  options.kv_blocks = 2000;
  const Json some(EngineFigures(EngineReplay(Chat(), options, {}).value().report));
  EXPECT_GT(some.Find("ttft_p50_seconds")->AsNumber().value_or(0), 0);
}

// The tiers of a profile count as far as flags do not say otherwise, and the output says which they are.
TEST(EngineReplay, TiersAreThoseThatTheProfileMeasured) {
  cost::CalibrationProfile profile{
      .key = {.model = "ab12", .numerics = "cpu-1", .isa = "avx2", .threads = 2, .kv_type = "f16"},
      .source = "a test",
      .curve = {0.01, 5e-5, 4e-9, 0, 2e-5},
      .tiers = {}};
  profile.tiers[TierIndex(TierId::kHost)][0] = TierRate{1e-3, 7e8};
  profile.tiers[TierIndex(TierId::kDisk)] = {TierRate{2e-3, 3e8}, TierRate{4e-3, 1e8}};
  const std::string path = testing::TempDir() + "replay_sweep_test_profile.json";
  ASSERT_TRUE(WriteFileAtomically(path, cost::ProfileText(profile)).ok());
  EngineReplayOptions options{.engine = true, .profile = path, .kv_blocks = 100};
  options.host_blocks = options.disk_blocks = 5000;
  const ReplayMachine measured = MachineOf(options).value();
  ASSERT_TRUE(measured.tiers.link.has_value());
  EXPECT_EQ(measured.tiers.link->bytes_per_second, 7e8);
  EXPECT_EQ(measured.tiers.link->latency, Nanos(1'000'000));
  EXPECT_EQ(measured.tiers.disk_read, (TierRate{2e-3, 3e8}));
  EXPECT_EQ(measured.tiers.disk_write, (TierRate{4e-3, 1e8}));
  EXPECT_EQ(
      measured.facts.tier_rates,
      "host link 0.7 GB/s after 1000 us (measured), disk reads 0.3 GB/s after 2000 us (measured), writes 0.1 GB/s "
      "after 4000 us (measured)");
  options.host_link.bytes = 2'000'000'000;
  options.disk_read.bytes = 5'000'000'000;
  options.disk_latency = 0;
  const ReplayMachine given = MachineOf(options).value();
  EXPECT_EQ(given.tiers.link->bytes_per_second, 2e9);
  EXPECT_EQ(given.tiers.disk_read, (TierRate{0, 5e9}));
  EXPECT_EQ(given.tiers.disk_write, (TierRate{0, 1e8}));
  options = {.engine = true, .step_curve = "0.01,5e-5,4e-9,0,2e-5", .kv_blocks = 100};
  options.disk_blocks = 5000;
  const ReplayMachine assumed = MachineOf(options).value();
  EXPECT_FALSE(assumed.tiers.link.has_value());
  EXPECT_EQ(assumed.facts.tier_rates,
            "disk reads 3 GB/s after 100 us (assumed), writes 1.5 GB/s after 100 us (assumed)");
}

}  // namespace
}  // namespace cachalot::cli
