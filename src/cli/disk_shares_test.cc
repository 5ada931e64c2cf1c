#include "cli/disk_shares.h"

#include <gtest/gtest.h>

#include "tier/session_journal.h"

namespace cachalot::cli {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

TierOptions On(const std::string& disk_path, const std::string& session_path = "") {
  TierOptions options;
  options.disk_path = disk_path;
  options.disk_size.bytes = kGiB;
  options.session_path = session_path;
  return options;
}

TEST(DiskShares, SessionsInTheDiskTiersFolderTakeASixteenthOfItAtMostAndKvTheRest) {
  for (const TierOptions& options : {On("/kv"), On("/kv", "/kv/a/b"), On("kv/", "./kv/s"), On("/a/../kv", "/kv")}) {
    const DiskShares shares = ShareDisk(options, kGiB / 2).value();
    EXPECT_EQ(shares.session_bytes, kGiB / 16) << options.session_path;
    EXPECT_EQ(shares.kv_bytes + shares.session_bytes, kGiB);
    EXPECT_EQ(shares.session_memory, tier::LiveBytesWithin(kGiB / 16));
  }
  EXPECT_EQ(SessionFolder(On("/kv")), "/kv/sessions");
}

TEST(DiskShares, AndNoMoreThanTheirMemoryNeeds) {
  const DiskShares shares = ShareDisk(On("/kv"), 1000).value();
  EXPECT_EQ(shares.session_bytes, 1000 * tier::kJournalParts);
  EXPECT_EQ(shares.session_memory, 1000u);
  EXPECT_EQ(ShareDisk(On("/kv"), 0).value().kv_bytes, kGiB);
}

TEST(DiskShares, SessionsElsewhereTakeNothingOfIt) {
  for (const TierOptions& options : {On("/kv", "/kv-sessions"), On("/kv", "/sessions"), On("/kv/x", "/kv"), On("")}) {
    const DiskShares shares = ShareDisk(options, kGiB / 2).value();
    EXPECT_EQ(shares.session_bytes, 0u) << options.session_path;
    EXPECT_EQ(shares.kv_bytes, kGiB);
    EXPECT_EQ(shares.session_memory, kGiB / 2);
  }
}

TEST(DiskShares, SessionsAreNotSavedByNameWhereNobodyWouldCountThem) {
  TierOptions options = On("/kv");
  options.session_files = "/kv/saved";
  EXPECT_EQ(ShareDisk(options, kGiB).status().code(), Code::kInvalid);
  options.session_files = "/saved";
  EXPECT_TRUE(ShareDisk(options, kGiB).ok());
}

}  // namespace
}  // namespace cachalot::cli
