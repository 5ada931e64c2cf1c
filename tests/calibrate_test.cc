// What `cachalot calibrate` measures of a real model is a profile that makes sense, and that plan, replay and advise go
// by.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cost/calibration_profile.h"

namespace cachalot::cli {
namespace {

using nlohmann::json;

// The JSON that the command prints; it must go well.
json Printed(Status (*command)(const Arguments&), const Arguments& arguments) {
  testing::internal::CaptureStdout();
  const Status status = command(arguments);
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(status.ok()) << status.message();
  json out = json::parse(printed, nullptr, false);
  EXPECT_TRUE(out.is_object()) << printed;
  return out;
}

class Calibrate : public testing::Test {
 protected:
  Calibrate() {
    std::string pattern = std::filesystem::temp_directory_path() / "cachalot_calibrate_XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  ~Calibrate() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/profile.json"; }
  cost::CalibrationProfile Profile() const {
    std::ifstream file(path());
    std::stringstream text;
    text << file.rdbuf();
    const Result<cost::CalibrationProfile> profile = cost::ParseProfile(text.str());
    EXPECT_TRUE(profile.ok()) << profile.status().message();
    return profile.ok() ? *profile : cost::CalibrationProfile{};
  }

  std::string folder_;
};

void ExpectSane(const cost::CalibrationProfile& profile) {
  EXPECT_EQ(profile.key.model.size(), 64u);
  EXPECT_EQ(profile.key.threads, 1u);
  EXPECT_EQ(profile.key.kv_type, "f16");
  EXPECT_TRUE(std::isfinite(profile.relative_error) && profile.relative_error >= 0) << profile.relative_error;
  for (const double seconds : profile.curve) EXPECT_TRUE(std::isfinite(seconds) && seconds >= 0) << seconds;
  EXPECT_GT(profile.curve[1], 0);  // a row
  EXPECT_EQ(profile.curve[3], 0);  // no layer has a window
  for (const auto& way : profile.tiers[TierIndex(TierId::kDisk)]) {
    ASSERT_TRUE(way.has_value());
    EXPECT_TRUE(std::isfinite(way->bytes_per_second) && way->bytes_per_second > 0) << way->bytes_per_second;
    EXPECT_TRUE(std::isfinite(way->latency_seconds) && way->latency_seconds >= 0) << way->latency_seconds;
  }
  EXPECT_FALSE(profile.tiers[TierIndex(TierId::kHost)].front().has_value());  // a CPU has no link
}

// More rows took longer, and are predicted to.
void ExpectRising(const json& steps) {
  std::map<int, std::pair<double, double>> by_rows;
  for (const json& step : steps) {
    const double measured = step["measured"], predicted = step["predicted"];
    EXPECT_TRUE(measured > 0 && predicted > 0) << step;
    if (step["sequences"] == 1 && step["depth"] == 0 && step["logit_rows"] == 1) {
      by_rows[step["rows"]] = {measured, predicted};
    }
  }
  ASSERT_TRUE(by_rows.contains(1) && by_rows.contains(128));
  EXPECT_LT(by_rows[1].first, by_rows[128].first);
  for (auto next = std::next(by_rows.begin()); next != by_rows.end(); ++next) {
    EXPECT_LT(std::prev(next)->second.second, next->second.second) << next->first << " rows";
  }
}

// That of moving a session over the disk that was measured.
json MovedOverDisk(const std::string& profile, const std::string& context) {
  const json plan = Printed(PlanCommand, {"smollm2", "--profile=" + profile, "--context=" + context, "--json"});
  for (const json& row : plan["tables"]["moving"]["rows"]) {
    if (row["link"] == "Disk, measured" || row["link"]["value"] == "Disk, measured") return row;
  }
  ADD_FAILURE() << plan["tables"]["moving"];
  return {};
}

TEST_F(Calibrate, WhatItSaysOfSmolLm2IsSaneAndPlanReplayAndAdviseGoByIt) {
  const Arguments arguments = {
      "smollm2", "--context=128", "--threads=1", "--calibration=" + path(), "--disk-path=" + folder_, "--json"};
  testing::internal::CaptureStdout();
  const Status status = CalibrateCommand(arguments);
  const std::string text = testing::internal::GetCapturedStdout();
  if (status.code() == Code::kUnavailable) GTEST_SKIP() << status.message();
  ASSERT_TRUE(status.ok()) << status.message();
  const json printed = json::parse(text, nullptr, false);
  EXPECT_EQ(printed["path"], path());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/calibration"));
  ExpectRising(printed["steps"]);
  const cost::CalibrationProfile profile = Profile();
  ExpectSane(profile);
  const TierRate disk = profile.tiers[TierIndex(TierId::kDisk)].front().value_or(TierRate{});

  const json shorter = MovedOverDisk(path(), "64"), longer = MovedOverDisk(path(), "128");
  EXPECT_EQ(longer["rate"]["value"], disk.bytes_per_second);
  EXPECT_LT(shorter["load"]["value"], longer["load"]["value"]);
  EXPECT_GT(shorter["recompute"]["value"], 64 * profile.curve[1]);
  EXPECT_LT(shorter["recompute"]["value"], longer["recompute"]["value"]);

  const json replayed =
      Printed(ReplayCommand, {"--workload=chat", "--requests=12", "--engine", "--profile=" + path(),
                              "--kv-model=smollm2", "--kv-blocks=2000", "--disk-blocks=500", "--json"});
  EXPECT_EQ(replayed["step_costs"], profile.source);
  EXPECT_NE(replayed["tier_rates"].get<std::string>().find("(measured)"), std::string::npos) << replayed["tier_rates"];
  EXPECT_GT(replayed["compute_seconds"].get<double>(), 1000 * profile.curve[1]);

  const std::string advised = Printed(AdviseCommand, {"--workload=chat", "--requests=20", "--model=smollm2",
                                                      "--profile=" + path(), "--kv-memory=200MiB", "--json"})
                                  .dump();
  EXPECT_NE(advised.find(profile.source), std::string::npos) << advised;
  EXPECT_NE(advised.find("GB/s (measured)"), std::string::npos) << advised;
}

}  // namespace
}  // namespace cachalot::cli
