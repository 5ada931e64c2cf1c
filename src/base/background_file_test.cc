#include "base/background_file.h"

#include <future>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/testing/fault_file_system.h"

namespace cachalot {
namespace {

using Gaps = BackgroundFile::Gaps;

std::string TextOf(const FaultFileSystem& files) {
  const std::vector<std::byte> bytes = files.Contents("/log");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(BackgroundFile, KeepsPiecesInOrderAndOnDisk) {
  FaultFileSystem files;
  auto file = BackgroundFile::Create(files, "/log", Gaps::kGaps);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(files.SyncFolder("/").ok());
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    const std::string piece = std::to_string(i) + "\n";
    expected += piece;
    if (i % 2 == 0) {
      (*file)->Append(piece);
    } else {
      EXPECT_TRUE((*file)->TryAppend(piece.size(), [piece] { return piece; }));
    }
  }
  EXPECT_TRUE((*file)->Close().ok());
  EXPECT_EQ(TextOf(*files.AfterCrash(Unsynced::kLost)), expected);
  EXPECT_EQ((*file)->failed_pieces(), 0u);
}

TEST(BackgroundFile, IsRefusedWhereThereIsAFileOrNoFolder) {
  FaultFileSystem files;
  files.SetContents("/log", {});
  EXPECT_EQ(BackgroundFile::Create(files, "/log", Gaps::kGaps).status().code(), Code::kUnavailable);
  EXPECT_FALSE(BackgroundFile::Create(files, "/nowhere/log", Gaps::kGaps).ok());
}

TEST(BackgroundFile, TheNextPieceTakesThePlaceOfOneThatFailed) {
  FaultFileSystem files;
  auto file = BackgroundFile::Create(files, "/log", Gaps::kGaps);
  ASSERT_TRUE(file.ok());
  files.Fail({.op = FileOp::kWrite, .nth = 2, .onwards = false, .code = Code::kOverloaded});
  (*file)->Append("one\n");
  (*file)->Append("a long piece that is torn\n");
  (*file)->Append("three\n");
  EXPECT_EQ((*file)->Close().code(), Code::kOverloaded);
  EXPECT_EQ(TextOf(files), "one\nthree\n");
  EXPECT_EQ((*file)->failed_pieces(), 1u);
}

TEST(BackgroundFile, NothingFollowsAGapWhereThereMustBeNone) {
  FaultFileSystem files;
  auto file = BackgroundFile::Create(files, "/log", Gaps::kNoGaps);
  ASSERT_TRUE(file.ok());
  files.Fail({.op = FileOp::kWrite, .nth = 2, .onwards = false, .code = Code::kOverloaded});
  for (const char* piece : {"one\n", "two\n", "three\n"}) (*file)->Append(piece);
  EXPECT_FALSE((*file)->Close().ok());
  EXPECT_EQ(TextOf(files), "one\n");
  EXPECT_EQ((*file)->failed_pieces(), 2u);
}

TEST(BackgroundFile, TakesNothingMoreWhileTooMuchWaits) {
  FaultFileSystem files;
  auto file = BackgroundFile::Create(files, "/log", Gaps::kGaps);
  ASSERT_TRUE(file.ok());
  std::promise<void> go_on;
  std::shared_future<void> wait = go_on.get_future().share();
  ASSERT_TRUE((*file)->TryAppend(BackgroundFile::kMostQueuedBytes, [wait] {
    wait.wait();
    return std::string("first\n");
  }));
  EXPECT_FALSE((*file)->TryAppend(1, [] { return std::string("second\n"); }));
  go_on.set_value();
  (*file)->Append("third\n");  // waits for room
  EXPECT_TRUE((*file)->Close().ok());
  EXPECT_EQ(TextOf(files), "first\nthird\n");
}

}  // namespace
}  // namespace cachalot
