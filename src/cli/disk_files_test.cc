#include "cli/disk_files.h"

#include <gtest/gtest.h>

namespace cachalot::cli {
namespace {

TierOptions OptionsOf(std::string disk_io, std::string disk_path = "/kv") {
  TierOptions options;
  options.disk_io = std::move(disk_io);
  options.disk_path = std::move(disk_path);
  return options;
}

Result<std::unique_ptr<Ring>> Refuse() { return Unavailable("Cannot allocate memory"); }

struct IdleRing final : Ring {
  bool Read(int, std::span<PlaceRead>) override { return true; }
};

TEST(DiskFiles, DiskIoChoosesHowKvIsRead) {
  const RingOptions rings{.make = [] { return Result<std::unique_ptr<Ring>>(std::make_unique<IdleRing>()); }};
  EXPECT_EQ(FilesFor(OptionsOf("auto"), rings).value()->ReadsBy(), "io_uring");
  EXPECT_EQ(FilesFor(OptionsOf("io_uring"), rings).value()->ReadsBy(), "io_uring");
  EXPECT_EQ(FilesFor(OptionsOf("pread"), rings).value()->ReadsBy(), "pread");
}

TEST(DiskFiles, WhereIoUringDoesNotWorkOnlyThoseWhoInsistAreRefused) {
  const RingOptions rings{.make = Refuse};
  EXPECT_EQ(FilesFor(OptionsOf("auto"), rings).value()->ReadsBy(), "pread (io_uring: Cannot allocate memory)");
  const Status refused = FilesFor(OptionsOf("io_uring"), rings).status();
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_EQ(refused.message(), "--disk-io: io_uring: Cannot allocate memory");
}

TEST(DiskFiles, WithoutADiskPathNoRingIsMadeAndWordsAreChecked) {
  const RingOptions rings{.make = Refuse};
  EXPECT_EQ(FilesFor(OptionsOf("io_uring", ""), rings).value()->ReadsBy(), "pread");
  const Status unknown = FilesFor(OptionsOf("aio", ""), rings).status();
  EXPECT_EQ(unknown.code(), Code::kInvalid);
  EXPECT_EQ(unknown.message(), "--disk-io: expected auto, pread or io_uring, got \"aio\"");
}

}  // namespace
}  // namespace cachalot::cli
