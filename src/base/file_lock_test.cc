#include "base/file_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <optional>
#include <thread>

namespace cachalot {
namespace {

TEST(FileLock, TheSecondWaitsForTheFirst) {
  const std::string path = ::testing::TempDir() + "/file_lock_test.lock";
  std::optional<FileLock> first;
  {
    Result<FileLock> lock = FileLock::Acquire(path, [] { FAIL() << "nobody holds it"; });
    ASSERT_TRUE(lock.ok()) << lock.status().message();
    first = std::move(lock).value();
  }
  std::promise<void> waits;
  std::atomic<bool> released{false};
  std::thread other([&] {
    const Result<FileLock> second = FileLock::Acquire(path, [&] { waits.set_value(); });
    EXPECT_TRUE(second.ok());
    EXPECT_TRUE(released);
  });
  waits.get_future().wait();
  released = true;
  first.reset();
  other.join();
  EXPECT_TRUE(FileLock::Acquire(path, [] { FAIL() << "nobody holds it"; }).ok());
  std::filesystem::remove(path);
}

TEST(FileLock, OneThatOnlyTriesFailsAtOnceWhileAnotherHoldsIt) {
  const std::string path = ::testing::TempDir() + "/file_lock_try_test.lock";
  {
    const Result<FileLock> first = FileLock::TryAcquire(path);
    ASSERT_TRUE(first.ok()) << first.status().message();
    const Status second = FileLock::TryAcquire(path).status();
    EXPECT_EQ(second.code(), Code::kUnavailable);
    EXPECT_EQ(second.message(), path + " is held by another process");
  }
  EXPECT_TRUE(FileLock::TryAcquire(path).ok());
  std::filesystem::remove(path);
}

TEST(FileLock, APlaceThatCannotBeWrittenIsNamed) {
  const Status status = FileLock::Acquire("/no/such/folder/x.lock").status();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(status.message(), "cannot open /no/such/folder/x.lock: No such file or directory");
}

}  // namespace
}  // namespace cachalot
