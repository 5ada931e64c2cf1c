#include "cli/calibration.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"

namespace cachalot::cli {
namespace {

const cost::CalibrationKey kKey = {"ab12", "cpu-1", "avx2", 2, "f16"};
const cost::CalibrationProfile kProfile = {.key = kKey, .relative_error = 0.03, .curve = {2e-3, 3e-4, 5e-9, 0, 4e-4}};

class CalibrationTest : public testing::Test {
 protected:
  CalibrationTest() : folder_(testing::TempDir() + "calibration_test") { std::filesystem::remove_all(folder_); }
  ~CalibrationTest() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  const std::string folder_;
};

TEST_F(CalibrationTest, WhatWasStoredIsReadByItsOwnerOnly) {
  ASSERT_TRUE(StoreCalibration(Path("deep/a.json"), kProfile).ok());
  const Result<cost::CalibrationProfile> profile = ReadCalibration(Path("deep/a.json"), kKey);
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  EXPECT_EQ(profile->curve, kProfile.curve);
  EXPECT_EQ(profile->tiers, kProfile.tiers);
  EXPECT_EQ(std::filesystem::status(Path("deep/a.json")).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(Path("deep")), {}), 1);
}

TEST(ShippedProfiles, CanBeReadAndNameTheirSource) {
  const std::filesystem::directory_iterator folder(CACHALOT_SOURCE_DIR "/bench/profiles");
  size_t profiles = 0;
  for (const std::filesystem::directory_entry& entry : folder) {
    const std::string text = ReadFile(entry.path(), cost::kMaxProfileBytes).value();
    const Result<cost::CalibrationProfile> profile = cost::ParseProfile(text);
    ASSERT_TRUE(profile.ok()) << entry.path() << ": " << profile.status().message();
    EXPECT_NE(profile->source, "") << entry.path();
    EXPECT_EQ(cost::ProfileText(*profile), text) << entry.path();
    ++profiles;
  }
  EXPECT_GT(profiles, 1u);
}

TEST_F(CalibrationTest, WhatCannotBeUsedIsNamed) {
  EXPECT_NE(ReadCalibration(Path("none.json"), kKey).status().message().find(Path("none.json")), std::string::npos);
  ASSERT_TRUE(StoreCalibration(Path("a.json"), kProfile).ok());
  cost::CalibrationKey other = kKey;
  other.threads = 8;
  EXPECT_EQ(ReadCalibration(Path("a.json"), other).status().message(),
            Path("a.json") + ": this calibration is of threads 2 instead of 8");
  ASSERT_TRUE(WriteFileAtomically(Path("torn.json"), R"({"version":1,)").ok());
  const Status torn = ReadCalibration(Path("torn.json"), kKey).status();
  EXPECT_EQ(torn.code(), Code::kInvalid);
  EXPECT_NE(torn.message().find(Path("torn.json") + " is no calibration profile"), std::string::npos) << torn.message();
  ASSERT_TRUE(WriteFileAtomically(Path("large.json"), std::string(cost::kMaxProfileBytes + 1, ' ')).ok());
  EXPECT_FALSE(ReadCalibration(Path("large.json"), kKey).ok());
  EXPECT_FALSE(ReadCalibration(folder_, kKey).ok());
}

TEST_F(CalibrationTest, AFolderThatCannotBeMadeIsNamed) {
  ASSERT_TRUE(StoreCalibration(Path("a.json"), kProfile).ok());
  const Status status = StoreCalibration(Path("a.json/b.json"), kProfile);
  EXPECT_NE(status.message().find(Path("a.json")), std::string::npos) << status.message();
}

}  // namespace
}  // namespace cachalot::cli
