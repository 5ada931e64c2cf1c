#include "cli/disk_packing.h"

#include <gtest/gtest.h>

#include "base/log.h"

namespace cachalot::cli {
namespace {

Result<uint32_t> Packed(const char* asked, std::optional<double> bytes_per_second, KvType type = KvType::kF16) {
  SetLogLevel(LogLevel::kOff);
  SteadyClock clock;
  TierOptions options;
  options.disk_compression = asked;
  TierRateTable measured;
  if (bytes_per_second) {
    measured[TierIndex(TierId::kDisk)][static_cast<size_t>(Direction::kUp)] = TierRate{1e-4, *bytes_per_second};
  }
  return PackedElementBytes(options, type, measured, clock);
}

TEST(DiskPacking, AutoPacksForASlowDiskAlone) {
  EXPECT_EQ(Packed("auto", 1e3).value(), 2u);
  EXPECT_EQ(Packed("auto", 1e3, KvType::kF32).value(), 4u);
  EXPECT_EQ(Packed("auto", 1e15).value(), 0u);
  EXPECT_EQ(Packed("auto", std::nullopt).value(), 0u) << "nobody has measured it";
}

TEST(DiskPacking, WhatIsAskedForIsDone) {
  for (const std::optional<double> rate : {std::optional<double>(), std::optional(1e3), std::optional(1e15)}) {
    EXPECT_EQ(Packed("none", rate).value(), 0u);
    EXPECT_EQ(Packed("zstd", rate).value(), 2u);
  }
  EXPECT_EQ(Packed("lz4", 1e9).status().message(), "--disk-compression: expected none, zstd or auto, got \"lz4\"");
}

TEST(DiskPacking, ValuesLikeThoseOfKvShrinkALittle) {
  SteadyClock clock;
  for (const KvType type : {KvType::kF16, KvType::kBF16, KvType::kF32}) {
    const cost::PackingSpeed speed = TryPacking(type, clock);
    EXPECT_GT(speed.ratio, 1.05);
    EXPECT_LT(speed.ratio, 2);
    EXPECT_GT(speed.unpacked_bytes_per_second, 1e6);
  }
}

}  // namespace
}  // namespace cachalot::cli
