// What `cachalot replay` and `cachalot inspect` refuse.
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/file_system.h"
#include "cli/commands.h"
#include "cli/inspect_disk.h"
#include "cli/replay_inputs.h"
#include "cli/trace_source.h"

namespace cachalot::cli {
namespace {

using ::testing::HasSubstr;

TEST(Replay, RefusesSettingsOfWhichOneWouldBePassedOver) {
  const auto message = [](const Arguments& arguments) { return ReplayCommand(arguments).message(); };
  const auto both = [](const std::string& one, const std::string& other) {
    return fmt::format("{} has no effect with {}: expected one of both", one, other);
  };
  const auto alone = [](const std::string& one, const std::string& other) {
    return fmt::format("{} has no effect without {}", one, other);
  };
  EXPECT_EQ(message({"TRACE", "--input-log=x", "--decision-log=y"}), both("TRACE", "--input-log"));
  EXPECT_EQ(message({"--workload=chat", "--input-log=x", "--decision-log=y"}), both("--workload", "--input-log"));
  EXPECT_EQ(message({"--input-log=x", "--decision-log=y", "--html=z"}), both("--html", "--input-log"));
  EXPECT_EQ(message({"--workload=chat", "--engine", "--curve=10"}), both("--curve", "--engine"));
  EXPECT_EQ(message({"--workload=chat", "--curve=10", "--sweep=seed=1"}), both("--curve", "--sweep"));
  EXPECT_EQ(message({"--workload=chat", "--requests=0", "--capacity-blocks=9"}),
            "--requests is 0: expected at least one");
  const std::string no_size =
      "expected --capacity-blocks, the blocks that the cache holds, or --curve with several such sizes, or --engine";
  EXPECT_EQ(message({"--workload=chat"}), no_size);
  EXPECT_EQ(message({"T", "--sweep=policy=lru,cost"}), no_size);
  // Of the engine, without it.
  EXPECT_EQ(message({"T", "--capacity-blocks=3", "--eviction=lru"}), alone("--eviction", "--engine"));
  EXPECT_EQ(message({"T", "--capacity-blocks=5", "--series=s.csv"}), alone("--series", "--engine"));
  EXPECT_EQ(message({"T", "--capacity-blocks=5", "--request-log=f"}), alone("--request-log", "--engine"));
  EXPECT_EQ(message({"T", "--capacity-blocks=5", "--host-blocks=9"}), alone("--host-blocks", "--engine"));
  EXPECT_EQ(message({"T", "--capacity-blocks=5", "--kv-blocks=9", "--no-engine"}), alone("--kv-blocks", "--engine"));
  EXPECT_EQ(message({"T", "--capacity-blocks=5", "--no-tenants"}), alone("--tenants", "--engine"));
  // Of the cache alone, with the engine.
  EXPECT_EQ(message({"T", "--engine", "--policy=lru"}), both("--policy", "--engine"));
  EXPECT_EQ(message({"T", "--engine", "--capacity-blocks=7"}), both("--capacity-blocks", "--engine"));
  EXPECT_EQ(message({"T", "--engine", "--warm-up-requests=7"}), both("--warm-up-requests", "--engine"));
  EXPECT_EQ(message({"T", "--engine", "--sweep=policy=lru"}), both("--policy", "--engine"));
  // Of a curve, a sweep, an input log, a trace, a workload.
  EXPECT_EQ(message({"T", "--capacity-blocks=5", "--sampled=0.1"}), alone("--sampled", "--curve"));
  EXPECT_EQ(message({"T", "--curve=5", "--policy=fifo"}), both("--policy", "--curve"));
  EXPECT_EQ(message({"T", "--capacity-blocks=5", "--threads=2"}), alone("--threads", "--sweep"));
  EXPECT_EQ(message({"T", "--decision-log=d"}), alone("--decision-log", "--input-log"));
  EXPECT_EQ(message({"T", "--with-eviction=lru"}), alone("--with-eviction", "--input-log"));
  EXPECT_EQ(message({"T", "--requests=5", "--capacity-blocks=5"}), alone("--requests", "--workload"));
  EXPECT_EQ(message({"T", "--seed=5", "--capacity-blocks=5"}), alone("--seed", "--workload or --reuse"));
  EXPECT_EQ(message({"--workload=chat", "--format=azure"}), both("--format", "--workload"));
  EXPECT_EQ(message({"--workload=chat", "--skip-bad"}), both("--skip-bad", "--workload"));
  EXPECT_EQ(message({"--workload=chat", "--reuse=none"}), both("--reuse", "--workload"));
  EXPECT_EQ(message({"--workload=chat", "--print-trace", "--json"}), both("--json", "--print-trace"));
  // Of a machine that is not there.
  const auto engine = [&](Arguments more) {
    more.insert(more.begin(), {"T", "--engine", "--step-curve=1,0,0,0,0", "--kv-blocks=9"});
    return message(more);
  };
  EXPECT_EQ(engine({"--kv-bytes-per-token=1", "--kv-model=llama-3.1-8b"}), both("--kv-bytes-per-token", "--kv-model"));
  EXPECT_EQ(engine({"--kv-format=f16"}), alone("--kv-format", "--kv-model"));
  EXPECT_EQ(engine({"--kv-model=llama-3.1-8b", "--kv-memory=1GiB"}), both("--kv-memory", "--kv-blocks"));
  EXPECT_EQ(engine({"--kv-model=llama-3.1-8b", "--sweep=kv-memory=1GiB"}), both("--kv-memory", "--kv-blocks"));
  EXPECT_EQ(message({"T", "--engine", "--step-curve=1,0,0,0,0", "--kv-memory=1GiB"}),
            alone("--kv-memory", "--kv-model or --kv-bytes-per-token"));
  EXPECT_EQ(engine({"--host-link=1GB"}), alone("--host-link", "--host-blocks or --disk-blocks"));
  EXPECT_EQ(engine({"--host-blocks=9", "--host-latency=1"}), alone("--host-latency", "--host-link"));
  EXPECT_EQ(engine({"--disk-read=1GB"}), alone("--disk-read", "--disk-blocks"));
  EXPECT_EQ(engine({"--profile=p"}), both("--profile", "--step-curve"));
  EXPECT_EQ(engine({"--series=s.csv", "--sweep=rate=1,2"}), both("--series", "--sweep"));
  EXPECT_EQ(engine({"--request-log=f", "--sweep=rate=1,2"}), both("--request-log", "--sweep"));
}

TEST(Replay, WhatASweepVariesCountsAsGiven) {
  // Past the rules: the file is not there.
  const Status status = ReplayCommand({"no such trace", "--engine", "--step-curve=1,0,0,0,0", "--kv-blocks=9",
                                       "--host-link=1GB", "--sweep=host-blocks=0,9"});
  EXPECT_THAT(status.message(), HasSubstr("no such trace"));
}

// What tells it: an id that stands in another place than in a request that is long forgotten.
TEST(Replay, OfTheCacheAloneKnowsNoMoreOfTheTraceThanTheCacheDoes) {
  const std::string trace = testing::TempDir() + "replay_test_trace.jsonl";
  ASSERT_TRUE(WriteFileAtomically(trace, R"({"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [1]}
{"timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": [2]}
{"timestamp": 2, "input_length": 1, "output_length": 1, "hash_ids": [3]}
{"timestamp": 3, "input_length": 513, "output_length": 1, "hash_ids": [3, 1]}
)")
                  .ok());
  const auto message = [&](Arguments more) {
    more.insert(more.begin(), {trace, "--capacity-blocks=1", "--json"});
    return ReplayCommand(more).message();
  };
  EXPECT_EQ(message({"--ghosts-per-block=0"}), "");
  const std::string displaced = trace + ": line 4: hash id 1 stands in another place than in an earlier request";
  EXPECT_EQ(message({"--ghosts-per-block=2"}), displaced);
  EXPECT_EQ(message({"--ghosts-per-block=0", "--policy=optimum"}), displaced);
  EXPECT_EQ(message({"--ghosts-per-block=0", "--warm-up-requests=4"}),
            "a warm-up of 4 requests leaves none of 4 to be counted: expected fewer");
}

TEST(ReplayPaper, RefusesATraceThatTheFigureDoesNotNeed) {
  EXPECT_EQ(ReplayCommand({"paper", "lightllm", "--trace", "X"}).message(),
            "--trace has no effect with lightllm, which needs none");
}

TEST(Advise, RefusesSettingsThatItWouldPassOver) {
  const auto message = [](const Arguments& arguments) { return AdviseCommand(arguments).message(); };
  EXPECT_EQ(message({"T", "--model=llama-3.1-8b", "--requests=5"}), "--requests has no effect without --workload");
  EXPECT_EQ(message({"--workload=chat", "--model=llama-3.1-8b", "--format=azure"}),
            "--format has no effect with --workload: expected one of both");
  EXPECT_EQ(message({"--workload=chat", "--model=llama-3.1-8b", "--api-key=5"}),
            "--api-key has no effect without --url");
  EXPECT_EQ(message({"T", "--model=llama-3.1-8b", "--admin-key=x"}), "--admin-key has no effect without --url");
  EXPECT_EQ(message({"T", "--url=http://127.0.0.1:9", "--seconds=5"}),
            "--seconds has no effect with TRACE: expected one of both");
  EXPECT_EQ(message({"--url=http://127.0.0.1:9", "--rate=5"}), "--rate has no effect without TRACE or --workload");
  EXPECT_EQ(message({"--url=http://127.0.0.1:9", "--eviction=lru"}),
            "--eviction has no effect without TRACE or --workload");
  EXPECT_EQ(message({"T", "--model=smollm2", "--profile=p", "--kv-memory=1GB", "--device=h100"}),
            "--device has no effect with --profile: expected one of both");
}

TEST(Plan, RefusesSettingsThatItWouldPassOver) {
  const auto message = [](Arguments more) {
    more.insert(more.begin(), "llama-3.1-8b");
    return PlanCommand(more).message();
  };
  EXPECT_EQ(message({"--concurrency=f", "--concurrency-p99=5"}),
            "--concurrency-p99 has no effect with --concurrency: expected one of both");
  EXPECT_EQ(message({"--keep-hours=5"}), "--keep-hours has no effect without --price-device-hour");
}

TEST(InputReplay, ReadsNoMoreOfWhatIsNoLog) {
  const std::string decisions = testing::TempDir() + "replay_test_decisions";
  const Status status =
      InputReplay({.input_log = "/dev/zero", .decision_log = decisions, .with_eviction = ""}).status();
  EXPECT_THAT(status.message(), HasSubstr("/dev/zero: offset 0: expected an input log"));
  EXPECT_FALSE(std::filesystem::exists(decisions));
}

TEST(InspectDisk, SaysSoWhereAFolderIsNoneOfTheDiskTier) {
  const std::string folder = testing::TempDir() + "replay_test_folder";
  std::filesystem::create_directories(folder);
  EXPECT_EQ(InspectDisk(folder, {}).message(), folder + " is no folder of the disk tier: there is no segment in it");
}

}  // namespace
}  // namespace cachalot::cli
