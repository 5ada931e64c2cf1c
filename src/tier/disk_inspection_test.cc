#include "tier/disk_inspection.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "tier/testing/disk_rig.h"

namespace cachalot::tier {
namespace {

struct InspectionRig : DiskRig {
  const ChainShape one{.identity = 1}, two{.identity = 2, .slot_bytes = 4096};
  InspectionRig() {
    EXPECT_TRUE(Open().ok());
    EXPECT_TRUE(Put(one, 1, 0, 10).ok());
    clock.Advance(std::chrono::seconds(60));
    EXPECT_TRUE(Put(two, 2, 0, 5).ok());
    EXPECT_TRUE(tier->Seal().ok());
    EXPECT_TRUE(Put(one, 1, 8, 4).ok());
    const Digest key = TestKey(two, 2, 4);
    EXPECT_TRUE(tier->Erase(std::span(&key, 1)).ok());
    files->SetContents("/disk/notes.txt", {});
  }
  FolderReport Inspect(bool check_payloads) {
    const Result<FolderReport> report = InspectFolder(*files, kTestFolder, check_payloads, clock.UnixSeconds());
    EXPECT_TRUE(report.ok());
    return *report;
  }
};

TEST(DiskInspection, TellsWhatIsLivePerSegmentAndIdentity) {
  InspectionRig rig;
  const FolderReport report = rig.Inspect(true);
  ASSERT_EQ(report.segments.size(), 2u);
  EXPECT_EQ(report.segments[0].state, SegmentState::kSealed);
  EXPECT_EQ(report.segments[0].records, 2u);
  EXPECT_EQ(report.segments[0].blocks, 15u);
  EXPECT_EQ(report.segments[0].live_blocks, 8u + 4u);
  EXPECT_EQ(report.segments[0].live_bytes, 8u * 1024 + 4u * 4096);
  EXPECT_EQ(report.segments[0].last_written_unix_seconds - report.segments[0].created_unix_seconds, 60);
  EXPECT_EQ(report.segments[1].state, SegmentState::kScanned);
  EXPECT_EQ(report.segments[1].live_blocks, 4u);
  ASSERT_EQ(report.identities.size(), 2u);
  EXPECT_EQ(report.identities[0].identity, TestIdentity(2));
  EXPECT_EQ(report.identities[0].tokens, 4u * 16);
  EXPECT_EQ(report.identities[1].blocks, 12u);
  EXPECT_EQ(report.identities[1].bytes, 12u * 1024);
  EXPECT_EQ(report.foreign_files, std::vector<std::string>{"notes.txt"});
  EXPECT_EQ(report.openings, 1u);
  EXPECT_EQ(report.deletions, 1u);
  EXPECT_EQ(report.deletions_problem, "");
  // It is what a tier then finds.
  ASSERT_TRUE(rig.Open().ok());
  EXPECT_EQ(rig.tier->stats().live_blocks, 16u);
}

TEST(DiskInspection, CountsDamage) {
  InspectionRig rig;
  const std::string sealed = rig.Segments().at(0), open = rig.Segments().at(1);
  rig.files->FlipBit(sealed, (2 * kDiskPage + 3 * 1024 + 7) * 8);
  rig.files->FlipBit(open, (2 * kDiskPage + 7) * 8);
  EXPECT_EQ(rig.Inspect(false).segments[0].damaged_blocks, 0u);
  FolderReport report = rig.Inspect(true);
  EXPECT_EQ(report.segments[0].damaged_blocks, 1u);
  EXPECT_EQ(report.segments[1].damaged_records, 1u);
  rig.files->FlipBit(sealed, 100);
  EXPECT_EQ(rig.Inspect(true).segments[0].state, SegmentState::kDamaged);
  ASSERT_TRUE(rig.files->Remove(fmt::format("{}/{}", kTestFolder, kDeletionFile)).ok());
  report = rig.Inspect(false);
  EXPECT_EQ(report.deletions_problem, "cachalot.deletions is missing");
  EXPECT_TRUE(report.identities.empty());
  EXPECT_EQ(InspectFolder(*rig.files, "/nowhere", false, 0).status().code(), Code::kUnavailable);
}

TEST(DiskInspection, ChangesNothing) {
  InspectionRig rig;
  const FileCounts before = rig.files->counts();
  rig.Inspect(true);
  const FileCounts after = rig.files->counts();
  for (const FileOp op : {FileOp::kWrite, FileOp::kTruncate, FileOp::kAllocate, FileOp::kSync, FileOp::kRename,
                          FileOp::kRemove, FileOp::kMakeFolder, FileOp::kSyncFolder}) {
    EXPECT_EQ(before.Of(op), after.Of(op));
  }
}

}  // namespace
}  // namespace cachalot::tier
