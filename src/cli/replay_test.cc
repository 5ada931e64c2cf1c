// What `cachalot replay` and `cachalot inspect` refuse.
#include <filesystem>
#include <string>

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
  EXPECT_THAT(message({"TRACE", "--input-log=x", "--decision-log=y"}), HasSubstr("expected one of both"));
  EXPECT_THAT(message({"--workload=chat", "--input-log=x", "--decision-log=y"}), HasSubstr("expected one of both"));
  EXPECT_THAT(message({"--workload=chat", "--engine", "--curve=10"}), HasSubstr("--curve is of the cache alone"));
  EXPECT_THAT(message({"--workload=chat", "--curve=10", "--sweep=seed=1"}), HasSubstr("either --curve or --sweep"));
  EXPECT_EQ(message({"--workload=chat", "--requests=0", "--capacity-blocks=9"}),
            "--requests is 0: expected at least one");
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
