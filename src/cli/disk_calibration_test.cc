#include "cli/disk_calibration.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace cachalot::cli {
namespace {

TEST(DiskCalibration, BothWaysAreMeasuredAndNothingIsLeft) {
  const std::string folder = testing::TempDir() + "/disk_calibration";
  std::filesystem::remove_all(folder);
  SteadyClock clock;
  const Result<TierRateTable> rates = MeasureDisk(folder, 16 << 10, clock);
  ASSERT_TRUE(rates.ok()) << rates.status().message();
  for (const std::optional<TierRate>& rate : (*rates)[TierIndex(TierId::kDisk)]) {
    ASSERT_TRUE(rate);
    EXPECT_GT(rate->bytes_per_second, 0);
    EXPECT_GE(rate->latency_seconds, 0);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

TEST(DiskCalibration, WhatCannotBeAFolderIsNamed) {
  const std::string path = testing::TempDir() + "/disk_calibration_file";
  std::ofstream(path) << "x";
  SteadyClock clock;
  const Status status = MeasureDisk(path, 16 << 10, clock).status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_NE(status.message().find(path), std::string::npos) << status.message();
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace cachalot::cli
