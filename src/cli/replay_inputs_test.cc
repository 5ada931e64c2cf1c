// Replay of engines over a disk that is slow, fails, and is not empty when they begin.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/log.h"
#include "cli/replay_inputs.h"
#include "cli/testing/replayed_log.h"
#include "engine/testing/tiered_soak.h"

namespace cachalot::cli {
namespace {

TEST(InputReplayOfTiers, WhateverTheDiskDidTheDecisionsAreMadeAgain) {
  SetLogLevel(LogLevel::kOff);
  uint64_t compared = 0, others = 0, loaded = 0, failed = 0;
  for (uint64_t seed = 0; seed < 14; ++seed) {
    const auto compare = [&](const engine::EngineLogs& logs) {
      ASSERT_TRUE(ReplayLog(logs.inputs()).decisions == logs.decisions()) << "seed " << seed;
      others += ReplayLog(logs.inputs(), "length").decisions != logs.decisions();
      ++compared;
    };
    const engine::TieredSoakReport report =
        engine::RunTieredSoak({.seed = seed,
                               .steps = 400,
                               .slots = 80,
                               .host_bytes = seed % 3 == 0 ? 0 : uint64_t{1} << 16,
                               .staging_bytes = uint64_t{1} << (seed % 2 == 0 ? 20 : 13),
                               .session_store = seed % 4 != 1,
                               .on_logs = compare});
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    loaded += report.loaded_tokens;
    failed += report.failed_loads;
  }
  EXPECT_GT(compared, 20u);
  EXPECT_GT(loaded, 300u);
  EXPECT_GT(failed, 0u);
  EXPECT_GT(others, compared / 2);
}

TEST(InputReplay, WritesItsDecisionsIntoANewFileOnly) {
  const std::string inputs = testing::TempDir() + "replay_inputs_in",
                    decisions = testing::TempDir() + "replay_inputs_out";
  std::string log;
  engine::RunTieredSoak(
      {.seed = 1, .steps = 20, .slots = 80, .on_logs = [&](const engine::EngineLogs& logs) { log = logs.inputs(); }});
  ASSERT_TRUE(WriteFileAtomically(inputs, log).ok());
  std::filesystem::remove(decisions);
  const InputReplayOptions options{.input_log = inputs, .decision_log = decisions, .with_eviction = ""};
  EXPECT_TRUE(InputReplay(options).ok());
  ASSERT_TRUE(WriteFileAtomically(decisions, "mine").ok());
  EXPECT_EQ(InputReplay(options).status().code(), Code::kUnavailable);
  EXPECT_EQ(ReadFile(decisions, 100).value(), "mine");
}

}  // namespace
}  // namespace cachalot::cli
