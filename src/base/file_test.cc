#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

namespace cachalot {
namespace {

class Files : public testing::Test {
 protected:
  Files() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~Files() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  const std::string folder_ =
      testing::TempDir() + "cachalot_file_" + testing::UnitTest::GetInstance()->current_test_info()->name();
};

std::string TextOf(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST_F(Files, WhatIsWrittenIsReadAndMapped) {
  const std::string text = std::string("line\n\0\xFF", 7) + std::string(200'000, 'x');
  ASSERT_TRUE(WriteFileAtomically(Path("a"), text).ok());
  EXPECT_EQ(ReadFile(Path("a"), 1 << 20).value(), text);
  EXPECT_EQ(TextOf(MappedFile::Open(Path("a")).value()), text);
}

TEST_F(Files, WritingReplacesAndLeavesNoTemporary) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old").ok());
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "new").ok());
  EXPECT_EQ(ReadFile(Path("a"), 100).value(), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Files, AFailedWriteSaysWhereAndLeavesTheOldFile) {
  const Status nowhere = WriteFileAtomically(Path("none/a"), "x");
  EXPECT_EQ(nowhere.code(), Code::kUnavailable);
  EXPECT_NE(nowhere.message().find("none/a"), std::string::npos);
  std::filesystem::create_directories(Path("folder/inside"));
  EXPECT_FALSE(WriteFileAtomically(Path("folder"), "x").ok());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Files, ALinkStaysOneAndWhatItNamesIsReplaced) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old").ok());
  std::filesystem::create_symlink("a", Path("link"));
  ASSERT_TRUE(WriteFileAtomically(Path("link"), "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
  EXPECT_EQ(ReadFile(Path("a"), 100).value(), "new");
}

TEST_F(Files, WhatIsNoRegularFileIsWrittenInto) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  std::thread reader([this] { EXPECT_EQ(ReadFile(Path("pipe"), 100).value(), "text"); });
  EXPECT_TRUE(WriteFileAtomically(Path("pipe"), "text").ok());
  reader.join();
  EXPECT_TRUE(std::filesystem::is_fifo(Path("pipe")));
  EXPECT_EQ(WriteFileAtomically("/dev/full", "text").message(), "cannot write to /dev/full: No space left on device");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  EXPECT_EQ(WriteFileAtomically(folder_, "text").message(), folder_ + " is a folder, expected a file");
}

TEST_F(Files, AnOpenMapKeepsTheOldContentsWhenTheFileIsReplaced) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "old").ok());
  const MappedFile map = MappedFile::Open(Path("a")).value();
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "new").ok());
  EXPECT_EQ(TextOf(map), "old");
}

TEST_F(Files, AMapMovesAndAnEmptyFileMapsToNothing) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "abc").ok());
  ASSERT_TRUE(WriteFileAtomically(Path("empty"), "").ok());
  MappedFile first = MappedFile::Open(Path("a")).value();
  MappedFile second = MappedFile::Open(Path("empty")).value();
  EXPECT_TRUE(second.bytes().empty());
  second = std::move(first);
  EXPECT_EQ(TextOf(second), "abc");
  const MappedFile third = std::move(second);
  EXPECT_EQ(TextOf(third), "abc");
}

TEST_F(Files, MissingFilesAndOtherKindsAreToldApart) {
  EXPECT_EQ(MappedFile::Open(Path("none")).status().code(), Code::kUnavailable);
  EXPECT_EQ(MappedFile::Open(folder_).status().code(), Code::kInvalid);
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::Open(Path("pipe")).status().code(), Code::kInvalid);
  EXPECT_EQ(ReadFile(Path("none"), 1).status().code(), Code::kUnavailable);
  EXPECT_EQ(ReadFile(folder_, 1).status().code(), Code::kInvalid);
}

TEST_F(Files, ReadingStopsAtTheLimit) {
  ASSERT_TRUE(WriteFileAtomically(Path("a"), "12345").ok());
  EXPECT_EQ(ReadFile(Path("a"), 5).value(), "12345");
  EXPECT_EQ(ReadFile(Path("a"), 4).status().code(), Code::kInvalid);
  EXPECT_EQ(ReadFile("/dev/zero", 1 << 20).status().code(), Code::kInvalid);
}

TEST(GetEnv, GivesTheValueOrTheFallback) {
  ASSERT_EQ(::setenv("CACHALOT_FILE_TEST", "set", 1), 0);
  EXPECT_EQ(GetEnv("CACHALOT_FILE_TEST", "fallback"), "set");
  ASSERT_EQ(::unsetenv("CACHALOT_FILE_TEST"), 0);
  EXPECT_EQ(GetEnv("CACHALOT_FILE_TEST", "fallback"), "fallback");
}

}  // namespace
}  // namespace cachalot
