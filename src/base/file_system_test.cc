#include "base/file_system.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/testing/fault_file_system.h"

namespace cachalot {
namespace {

std::vector<std::byte> BytesOf(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string TextOf(const File& file) {
  std::string text(file.Size().value(), '\0');
  EXPECT_TRUE(file.ReadAt(0, std::as_writable_bytes(std::span(text))).ok());
  return text;
}

class RealDisk {
 public:
  RealDisk() { std::filesystem::remove_all(folder_); }
  ~RealDisk() { std::filesystem::remove_all(folder_); }
  FileSystem& files() { return *files_; }
  const std::string& folder() const { return folder_; }

 private:
  const std::unique_ptr<FileSystem> files_ = DiskFileSystem();
  const std::string folder_ =
      testing::TempDir() + "cachalot_file_system_" + testing::UnitTest::GetInstance()->current_test_info()->name();
};

class FakeDisk {
 public:
  FileSystem& files() { return files_; }
  const std::string& folder() const { return folder_; }

 private:
  FaultFileSystem files_;
  const std::string folder_ = "disk";
};

template <class Disk>
class FileSystemContract : public testing::Test {
 protected:
  FileSystemContract() { EXPECT_TRUE(files().MakeFolder(disk_.folder()).ok()); }
  FileSystem& files() { return disk_.files(); }
  const std::string& folder() const { return disk_.folder(); }
  std::string Path(const std::string& name) const { return disk_.folder() + "/" + name; }
  std::unique_ptr<File> Made(const std::string& name, std::string_view text = "") {
    auto file = files().Open(Path(name), OpenMode::kCreate).value();
    EXPECT_TRUE(file->WriteAt(0, BytesOf(text)).ok());
    return file;
  }
  std::string Text(const std::string& name) { return TextOf(*files().Open(Path(name), OpenMode::kRead).value()); }

 private:
  Disk disk_;
};

using Disks = testing::Types<RealDisk, FakeDisk>;
TYPED_TEST_SUITE(FileSystemContract, Disks);

TYPED_TEST(FileSystemContract, WhatIsWrittenAnywhereIsReadAnywhere) {
  const auto file = this->Made("a", "hello");
  ASSERT_TRUE(file->WriteAt(3, BytesOf("p me")).ok());
  ASSERT_TRUE(file->WriteAt(9, BytesOf("!")).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(this->Text("a"), std::string("help me\0\0!", 10));
  std::vector<std::byte> part(2);
  ASSERT_TRUE(file->ReadAt(2, part).ok());
  EXPECT_EQ(part, BytesOf("lp"));
}

TYPED_TEST(FileSystemContract, AReadPastTheEndIsCorrupt) {
  const auto file = this->Made("a", "hello");
  std::vector<std::byte> into(3);
  EXPECT_TRUE(file->ReadAt(2, into).ok());
  for (const uint64_t offset : {3, 5, 100}) EXPECT_EQ(file->ReadAt(offset, into).code(), Code::kCorrupt);
  EXPECT_NE(file->ReadAt(3, into).message().find(this->Path("a")), std::string::npos);
  EXPECT_TRUE(file->ReadAt(5, {}).ok());
}

TYPED_TEST(FileSystemContract, ModesSayWhatMustExist) {
  EXPECT_EQ(this->files().Open(this->Path("a"), OpenMode::kRead).status().code(), Code::kUnavailable);
  EXPECT_EQ(this->files().Open(this->Path("a"), OpenMode::kReadWrite).status().code(), Code::kUnavailable);
  EXPECT_EQ(this->files().Open(this->Path("none/a"), OpenMode::kCreate).status().code(), Code::kUnavailable);
  this->Made("a", "old");
  EXPECT_EQ(this->files().Open(this->Path("a"), OpenMode::kCreate).status().code(), Code::kUnavailable);
  EXPECT_EQ(this->files().Open(this->Path("a"), OpenMode::kRead).value()->WriteAt(0, BytesOf("x")).code(),
            Code::kUnavailable);
  EXPECT_TRUE(this->files().Open(this->Path("a"), OpenMode::kReadWrite).value()->WriteAt(0, BytesOf("new")).ok());
  EXPECT_EQ(this->Text("a"), "new");
}

TYPED_TEST(FileSystemContract, AFolderIsNoFile) {
  for (const OpenMode mode : {OpenMode::kRead, OpenMode::kReadWrite}) {
    EXPECT_EQ(this->files().Open(this->folder(), mode).status().code(), Code::kInvalid);
  }
  EXPECT_FALSE(this->files().Remove(this->folder()).ok());
}

TYPED_TEST(FileSystemContract, TruncateCutsAndExtendsWithZeros) {
  const auto file = this->Made("a", "hello");
  ASSERT_TRUE(file->Truncate(2).ok());
  ASSERT_TRUE(file->Truncate(4).ok());
  EXPECT_EQ(this->Text("a"), std::string("he\0\0", 4));
}

TYPED_TEST(FileSystemContract, AllocateSetsSizeAndOccupies) {
  const auto file = this->Made("a", "hello");
  ASSERT_TRUE(file->Allocate(100'000).ok());
  EXPECT_EQ(file->Size().value(), 100'000u);
  EXPECT_GE(this->files().Occupied(this->Path("a")).value(), 100'000u);
  EXPECT_EQ(this->Text("a").substr(0, 7), std::string("hello\0\0", 7));
  ASSERT_TRUE(file->Allocate(3).ok());
  EXPECT_EQ(this->Text("a"), "hel");
  ASSERT_TRUE(file->Allocate(0).ok());
  EXPECT_EQ(file->Size().value(), 0u);
}

TYPED_TEST(FileSystemContract, DirectFilesTakeWholePages) {
  constexpr size_t kPage = 4096;
  const auto release = [](std::byte* bytes) { std::free(bytes); };
  const std::unique_ptr<std::byte, decltype(release)> page(
      static_cast<std::byte*>(std::aligned_alloc(kPage, 2 * kPage)), release);
  const std::span<std::byte> two_pages(page.get(), 2 * kPage);
  std::ranges::fill(two_pages, std::byte{7});
  const auto file = this->files().OpenDirect(this->Path("a"), OpenMode::kCreate).value();
  ASSERT_TRUE(file->Allocate(4 * kPage).ok());
  ASSERT_TRUE(file->WriteAt(kPage, two_pages).ok());
  ASSERT_TRUE(file->Sync().ok());
  std::ranges::fill(two_pages, std::byte{0});
  ASSERT_TRUE(file->ReadAt(2 * kPage, two_pages).ok());
  EXPECT_EQ(two_pages[0], std::byte{7});
  EXPECT_EQ(two_pages[kPage], std::byte{0});
  ASSERT_TRUE(file->Truncate(kPage + 10).ok());
  EXPECT_EQ(file->ReadAt(kPage, two_pages).code(), Code::kCorrupt);
}

TYPED_TEST(FileSystemContract, RenameReplacesAndRemoveForgivesAMissingFile) {
  this->Made("a", "old");
  this->Made("b", "new");
  ASSERT_TRUE(this->files().Rename(this->Path("b"), this->Path("a")).ok());
  EXPECT_EQ(this->Text("a"), "new");
  EXPECT_EQ(this->files().Rename(this->Path("b"), this->Path("c")).code(), Code::kUnavailable);
  ASSERT_TRUE(this->files().Remove(this->Path("a")).ok());
  ASSERT_TRUE(this->files().Remove(this->Path("a")).ok());
  EXPECT_EQ(this->files().Open(this->Path("a"), OpenMode::kRead).status().code(), Code::kUnavailable);
}

TYPED_TEST(FileSystemContract, AnOpenFileOutlivesItsName) {
  const auto file = this->Made("a", "still");
  ASSERT_TRUE(this->files().Remove(this->Path("a")).ok());
  EXPECT_EQ(TextOf(*file), "still");
  EXPECT_FALSE(file->Sync().ok()) << "nobody finds it again";
}

TYPED_TEST(FileSystemContract, ListGivesFilesInOrder) {
  for (const char* name : {"c", "a", "b10", "b"}) this->Made(name);
  ASSERT_TRUE(this->files().MakeFolder(this->Path("folder")).ok());
  ASSERT_TRUE(this->files().MakeFolder(this->Path("folder")).ok());
  ASSERT_TRUE(this->files().SyncFolder(this->folder()).ok());
  EXPECT_EQ(this->files().List(this->folder()).value(), (std::vector<std::string>{"a", "b", "b10", "c"}));
  EXPECT_TRUE(this->files().List(this->Path("folder")).value().empty());
  EXPECT_EQ(this->files().List(this->Path("none")).status().code(), Code::kUnavailable);
  EXPECT_EQ(this->files().SyncFolder(this->Path("none")).code(), Code::kUnavailable);
  EXPECT_FALSE(this->files().MakeFolder(this->Path("a")).ok());
  EXPECT_FALSE(this->files().MakeFolder(this->Path("none/folder")).ok());
}

TYPED_TEST(FileSystemContract, RoomIsWithinTheWhole) {
  const DiskRoom room = this->files().Room(this->folder()).value();
  EXPECT_GT(room.total_bytes, 0u);
  EXPECT_LE(room.free_bytes, room.total_bytes);
  EXPECT_EQ(this->files().Room(this->Path("none")).status().code(), Code::kUnavailable);
  EXPECT_EQ(this->files().Occupied(this->Path("none")).status().code(), Code::kUnavailable);
}

TEST(DiskFileSystem, MakesFilesAndFoldersForTheirOwnerAlone) {
  RealDisk disk;
  ASSERT_TRUE(disk.files().MakeFolder(disk.folder()).ok());
  ASSERT_TRUE(disk.files().Open(disk.folder() + "/a", OpenMode::kCreate).ok());
  struct stat info;
  ASSERT_EQ(::stat(disk.folder().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_EQ(::stat((disk.folder() + "/a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(DiskFileSystem, APipeIsRefusedAtOnceAndRoomThatIsNotThereIsNotGiven) {
  RealDisk disk;
  ASSERT_TRUE(disk.files().MakeFolder(disk.folder()).ok());
  const std::string pipe = disk.folder() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(disk.files().Open(pipe, OpenMode::kRead).status().code(), Code::kInvalid);
  EXPECT_EQ(disk.files().Open(pipe, OpenMode::kReadWrite).status().code(), Code::kInvalid);
  EXPECT_TRUE(disk.files().List(disk.folder()).value().empty());
  EXPECT_EQ(disk.files().Open("/dev/full", OpenMode::kReadWrite).status().code(), Code::kInvalid);
  const std::string path = disk.folder() + "/a";
  const auto file = disk.files().Open(path, OpenMode::kCreate).value();
  const DiskRoom room = disk.files().Room(disk.folder()).value();
  const Status full = file->Allocate(room.total_bytes + room.free_bytes + (uint64_t{1} << 30));
  EXPECT_EQ(full.code(), Code::kOverloaded);
  EXPECT_NE(full.message().find(disk.folder()), std::string::npos);
  EXPECT_EQ(disk.files().Occupied(path).value(), 0u);  // the disk was not filled to find that out
}

class Faults : public testing::Test {
 protected:
  std::unique_ptr<File> Made(const std::string& path, std::string_view text) {
    auto file = disk_.Open(path, OpenMode::kCreate).value();
    EXPECT_TRUE(file->WriteAt(0, BytesOf(text)).ok());
    return file;
  }
  static std::string Text(FaultFileSystem& disk, const std::string& path) {
    const auto file = disk.Open(path, OpenMode::kRead);
    return file.ok() ? TextOf(*file.value()) : "none";
  }

  FaultFileSystem disk_;
};

TEST_F(Faults, ACrashLosesContentsWithoutSyncAndNamesWithoutSyncFolder) {
  const auto file = Made("a", "first");
  EXPECT_EQ(Text(*disk_.AfterCrash(Unsynced::kLost), "a"), "none");
  ASSERT_TRUE(disk_.SyncFolder(".").ok());
  EXPECT_EQ(Text(*disk_.AfterCrash(Unsynced::kLost), "a"), "");
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(Text(*disk_.AfterCrash(Unsynced::kLost), "a"), "first");
  ASSERT_TRUE(file->WriteAt(0, BytesOf("other")).ok());
  ASSERT_TRUE(disk_.Rename("a", "b").ok());
  EXPECT_EQ(Text(*disk_.AfterCrash(Unsynced::kLost), "a"), "first");
  EXPECT_EQ(Text(*disk_.AfterCrash(Unsynced::kLost), "b"), "none");
  EXPECT_EQ(Text(*disk_.AfterCrash(Unsynced::kKept), "b"), "other");
}

TEST_F(Faults, AMixedCrashLosesKeepsAndTearsAtEveryByteBySeed) {
  const auto file = Made("a", "AAAA");
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(disk_.SyncFolder(".").ok());
  ASSERT_TRUE(file->WriteAt(0, BytesOf("BBBB")).ok());
  ASSERT_TRUE(disk_.Rename("a", "b").ok());
  std::vector<std::string> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto after = disk_.AfterCrash(Unsynced::kMixed, seed);
    const std::string old_name = Text(*after, "a");
    const std::string new_name = Text(*after, "b");
    ASSERT_NE(old_name == "none", new_name == "none");
    seen.push_back((old_name == "none" ? "b:" + new_name : "a:" + old_name));
    ASSERT_EQ(Text(*disk_.AfterCrash(Unsynced::kMixed, seed), "b"), new_name);
  }
  std::ranges::sort(seen);
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_EQ(seen, (std::vector<std::string>{"a:AAAA", "a:BAAA", "a:BBAA", "a:BBBA", "a:BBBB", "b:AAAA", "b:BAAA",
                                            "b:BBAA", "b:BBBA", "b:BBBB"}));
}

TEST_F(Faults, AFolderThatWasNotSyncedTakesItsFilesAlong) {
  ASSERT_TRUE(disk_.MakeFolder("f").ok());
  ASSERT_TRUE(Made("f/a", "x")->Sync().ok());
  ASSERT_TRUE(disk_.SyncFolder("f").ok());
  EXPECT_EQ(Text(*disk_.AfterCrash(Unsynced::kKept), "f/a"), "x");
  ASSERT_TRUE(disk_.SyncFolder(".").ok());
  EXPECT_EQ(Text(*disk_.AfterCrash(Unsynced::kLost), "f/a"), "x");
}

TEST_F(Faults, AnOperationFailsOnceOrFromThenOn) {
  const auto file = Made("a", "0");
  disk_.Fail({.op = FileOp::kWrite, .nth = 2, .onwards = false, .code = Code::kOverloaded});
  EXPECT_TRUE(file->WriteAt(0, BytesOf("1")).ok());
  EXPECT_EQ(file->WriteAt(0, BytesOf("2")).code(), Code::kOverloaded);
  EXPECT_TRUE(file->WriteAt(0, BytesOf("3")).ok());
  disk_.Fail({.op = FileOp::kAny, .nth = 3, .onwards = true, .code = Code::kUnavailable});
  EXPECT_TRUE(file->Sync().ok());
  EXPECT_TRUE(disk_.List(".").ok());
  EXPECT_EQ(file->Size().status().code(), Code::kUnavailable);
  EXPECT_EQ(disk_.Remove("a").code(), Code::kUnavailable);
  disk_.Heal();
  EXPECT_EQ(Text(disk_, "a"), "3");
}

TEST_F(Faults, WhatAFailedSyncWasToSaveMayBeLostThoughALaterOneSucceeds) {
  bool lost = false;
  bool kept = false;
  for (int i = 0; i < 50; ++i) {
    const std::string name = std::to_string(i);
    const auto file = Made(name, "x");
    disk_.Fail({.op = FileOp::kSync, .nth = 1, .onwards = false, .code = Code::kUnavailable});
    EXPECT_FALSE(file->Sync().ok());
    EXPECT_TRUE(file->Sync().ok());
    EXPECT_TRUE(disk_.SyncFolder(".").ok());
    EXPECT_EQ(TextOf(*file), "x");
    (Text(*disk_.AfterCrash(Unsynced::kLost), name) == "x" ? kept : lost) = true;
  }
  EXPECT_TRUE(lost);
  EXPECT_TRUE(kept);
}

TEST_F(Faults, AFullDiskTakesWhatFits) {
  disk_.SetTotalBytes(3 * 4096);
  const auto file = Made("a", std::string(5000, 'x'));
  EXPECT_EQ(disk_.Room(".").value().free_bytes, 4096u);
  EXPECT_EQ(file->WriteAt(5000, BytesOf(std::string(8000, 'y'))).code(), Code::kOverloaded);
  EXPECT_EQ(file->Size().value(), 3u * 4096u);
  EXPECT_EQ(disk_.Open("b", OpenMode::kCreate).value()->Allocate(1).code(), Code::kOverloaded);
  EXPECT_EQ(disk_.Occupied("a").value(), 3u * 4096u);
  ASSERT_TRUE(file->Truncate(0).ok());
  EXPECT_EQ(disk_.Room(".").value().free_bytes, 3u * 4096u);
  EXPECT_FALSE(file->WriteAt(~uint64_t{0} - 1, BytesOf("xyz")).ok());
}

TEST_F(Faults, ContentsAreDamagedWhereAskedAndOperationsCounted) {
  const auto file = Made("a", "abcd");
  disk_.FlipBit("a", 8 * 1);
  disk_.Cut("a", 3);
  EXPECT_EQ(TextOf(*file), "acc");
  EXPECT_EQ(disk_.Contents("a"), BytesOf("acc"));
  EXPECT_EQ(disk_.counts().Of(FileOp::kWrite), 1u);
  EXPECT_EQ(disk_.counts().bytes_written, 4u);
  EXPECT_EQ(disk_.counts().bytes_read, 3u);
  EXPECT_EQ(disk_.counts().Of(FileOp::kAny), 4u);  // open, write, size, read
}

TEST_F(Faults, AnUnalignedDirectAccessIsABug) {
  const auto file = disk_.OpenDirect("a", OpenMode::kCreate).value();
  EXPECT_EQ(file->WriteAt(0, BytesOf("x")).code(), Code::kInternal);
}

}  // namespace
}  // namespace cachalot
