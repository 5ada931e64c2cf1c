#include "tier/disk_read.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tier/disk_tier.h"
#include "tier/testing/disk_rig.h"

namespace cachalot::tier {
namespace {

// The operations by which a file is read: of each, the ranges, by first byte and end.
using Operations = std::vector<std::vector<std::pair<uint64_t, uint64_t>>>;

class WatchedFile final : public File {
 public:
  WatchedFile(std::unique_ptr<File> file, Operations& seen) : file_(std::move(file)), seen_(seen) {}
  Status ReadAt(uint64_t offset, std::span<std::byte> into) const override {
    seen_.push_back({{offset, offset + into.size()}});
    return file_->ReadAt(offset, into);
  }
  Status ReadAt(std::span<const FileRange> ranges) const override {
    seen_.emplace_back();
    for (const FileRange& range : ranges) {
      seen_.back().emplace_back(range.offset, range.offset + range.into.size());
    }
    return file_->ReadAt(ranges);
  }
  Status WriteAt(uint64_t offset, std::span<const std::byte> bytes) override { return file_->WriteAt(offset, bytes); }
  Status Truncate(uint64_t bytes) override { return file_->Truncate(bytes); }
  Status Allocate(uint64_t bytes) override { return file_->Allocate(bytes); }
  Status Sync() override { return file_->Sync(); }
  Result<uint64_t> Size() const override { return file_->Size(); }

 private:
  const std::unique_ptr<File> file_;
  Operations& seen_;
};

class WatchedFiles final : public FileSystem {
 public:
  explicit WatchedFiles(FileSystem& files) : files_(files) {}
  Operations seen;

  Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override {
    return files_.Open(path, mode);
  }
  Result<std::unique_ptr<File>> OpenDirect(const std::string& path, OpenMode mode) override {
    CACHALOT_ASSIGN_OR_RETURN(std::unique_ptr<File> file, files_.OpenDirect(path, mode));
    return std::unique_ptr<File>(std::make_unique<WatchedFile>(std::move(file), seen));
  }
  Status Rename(const std::string& from, const std::string& to) override { return files_.Rename(from, to); }
  Status Remove(const std::string& path) override { return files_.Remove(path); }
  Status MakeFolder(const std::string& path) override { return files_.MakeFolder(path); }
  Result<std::vector<std::string>> List(const std::string& folder) override { return files_.List(folder); }
  Status SyncFolder(const std::string& folder) override { return files_.SyncFolder(folder); }
  Result<DiskRoom> Room(const std::string& folder) override { return files_.Room(folder); }
  Result<uint64_t> Occupied(const std::string& path) override { return files_.Occupied(path); }

 private:
  FileSystem& files_;
};

// Records of 2, 2 and 2 blocks in one segment, and of 2 in another.
TEST(RecordReader, ReadsWhatIsInOneFileInOneOperationAndNoByteTwice) {
  const ChainShape shape{.slot_bytes = 2 * kDiskPage};
  DiskRig rig;
  WatchedFiles watched(*rig.files);
  const auto tier = DiskTier::Open(watched, rig.clock, rig.options).value();
  for (const uint64_t first : {0, 2, 4, 6}) {
    const KvRun run = TestRun(shape, 1, first, 2);
    ASSERT_TRUE(tier->Put(run, TestBytes(run, shape)).ok());
    if (first == 4) {
      ASSERT_TRUE(tier->Seal().ok());
    }
  }
  ASSERT_TRUE(tier->Flush().ok());
  watched.seen.clear();
  const KvRun run = TestRun(shape, 1, 1, 6);
  AlignedBytes memory;
  const std::span<std::byte> into = memory.Resize(12 * kDiskPage);
  EXPECT_EQ(tier->Read(run, into).value(), std::vector<ReadOutcome>(6, ReadOutcome::kRead));
  EXPECT_TRUE(std::ranges::equal(into, TestBytes(run, shape)));
  // In pages: a header and four of blocks for each record, from the second page of the file on.
  Operations pages = watched.seen;
  for (auto& operation : pages) {
    for (auto& [begin, end] : operation) begin /= kDiskPage, end /= kDiskPage;
  }
  EXPECT_EQ(pages, (Operations{{{1, 2}, {4, 6}, {6, 7}, {7, 11}, {11, 12}, {12, 16}}, {{1, 2}, {2, 4}}}));
}

}  // namespace
}  // namespace cachalot::tier
