#include "base/memory_info.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"

namespace cachalot {
namespace {

// A folder that stands for "/".
class FakeRoot : public testing::Test {
 protected:
  FakeRoot() {
    std::filesystem::remove_all(root_);
    Put("/proc/meminfo", "MemTotal:       16000000 kB\nMemFree:         100 kB\nMemAvailable:    8000000 kB\n");
  }
  ~FakeRoot() override { std::filesystem::remove_all(root_); }

  void Put(const std::string& path, const std::string& text) {
    const std::filesystem::path full = root_ + path;
    std::filesystem::create_directories(full.parent_path());
    ASSERT_TRUE(WriteFileAtomically(full, text).ok());
  }

  const std::string root_ =
      testing::TempDir() + "cachalot_root_" + testing::UnitTest::GetInstance()->current_test_info()->name();
};

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;

TEST_F(FakeRoot, TheFirstProcessorTellsItsName) {
  EXPECT_EQ(ProcessorName(root_), "");
  Put("/proc/cpuinfo", "processor\t: 0\nmodel\t\t: 49\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: a\n");
  EXPECT_EQ(ProcessorName(root_), "Some CPU @ 2 GHz");
  Put("/proc/cpuinfo", "model name");
  EXPECT_EQ(ProcessorName(root_), "");
  Put("/proc/cpuinfo", "model name\t:  \n\nmodel name");
  EXPECT_EQ(ProcessorName(root_), "");
}

TEST_F(FakeRoot, WithoutControlGroupsTheMachineDecides) {
  const MemoryInfo info = ReadMemoryInfo(root_).value();
  EXPECT_EQ(info.total_bytes, 16'000'000 * kKiB);
  EXPECT_EQ(info.available_bytes, 8'000'000 * kKiB);
  EXPECT_FALSE(info.limited_by_cgroup);
}

TEST_F(FakeRoot, Version2LimitMinusUsageCountsFileCacheAsAvailable) {
  Put("/proc/self/cgroup", "0::/app\n");
  Put("/sys/fs/cgroup/app/memory.max", std::to_string(1000 * kMiB) + "\n");
  Put("/sys/fs/cgroup/app/memory.current", std::to_string(700 * kMiB) + "\n");
  Put("/sys/fs/cgroup/app/memory.stat", "anon 5\nfile 7\ninactive_file " + std::to_string(300 * kMiB) +
                                            "\nactive_file " + std::to_string(100 * kMiB) + "\n");
  const MemoryInfo info = ReadMemoryInfo(root_).value();
  EXPECT_EQ(info.total_bytes, 1000 * kMiB);
  EXPECT_EQ(info.available_bytes, 700 * kMiB);
  EXPECT_TRUE(info.limited_by_cgroup);
}

TEST_F(FakeRoot, AParentsLimitHoldsEvenWhenItIsLargerThanTheChilds) {
  Put("/proc/self/cgroup", "0::/outer/inner\n");
  Put("/sys/fs/cgroup/outer/inner/memory.max", std::to_string(400 * kMiB));
  Put("/sys/fs/cgroup/outer/inner/memory.current", "0");
  Put("/sys/fs/cgroup/outer/memory.max", std::to_string(1000 * kMiB));
  Put("/sys/fs/cgroup/outer/memory.current", std::to_string(900 * kMiB));
  const MemoryInfo info = ReadMemoryInfo(root_).value();
  EXPECT_EQ(info.total_bytes, 400 * kMiB);
  EXPECT_EQ(info.available_bytes, 100 * kMiB);
}

TEST_F(FakeRoot, UsageAboveTheLimitLeavesNothing) {
  Put("/proc/self/cgroup", "0::/\n");
  Put("/sys/fs/cgroup/memory.max", std::to_string(100 * kMiB));
  Put("/sys/fs/cgroup/memory.current", std::to_string(200 * kMiB));
  EXPECT_EQ(ReadMemoryInfo(root_).value().available_bytes, 0u);
}

TEST_F(FakeRoot, UnlimitedGroupsLimitNothing) {
  Put("/proc/self/cgroup", "4:cpu,memory:/x\n0::/app\n");
  Put("/sys/fs/cgroup/app/memory.max", "max\n");
  Put("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n");
  Put("/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "1\n");
  EXPECT_FALSE(ReadMemoryInfo(root_).value().limited_by_cgroup);
}

TEST_F(FakeRoot, Version1LimitIsFoundAtTheTopWhenThePathIsTheHosts) {
  Put("/proc/self/cgroup", "5:cpuset:/docker/abc\n4:cpu,memory:/docker/abc\n");
  Put("/sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(512 * kMiB));
  Put("/sys/fs/cgroup/memory/memory.usage_in_bytes", std::to_string(112 * kMiB));
  Put("/sys/fs/cgroup/memory/memory.stat", "inactive_file 5\ntotal_inactive_file 1048576\ntotal_active_file 1048576\n");
  EXPECT_EQ(ReadMemoryInfo(root_).value().available_bytes, 402 * kMiB);
}

TEST_F(FakeRoot, GarbageIsRefusedOrIgnored) {
  Put("/proc/self/cgroup", "\n:\n::\nx\n0::/app");
  Put("/sys/fs/cgroup/app/memory.max", "?");
  EXPECT_FALSE(ReadMemoryInfo(root_).value().limited_by_cgroup);
  Put("/proc/meminfo", "MemTotal: lots\n");
  EXPECT_EQ(ReadMemoryInfo(root_).status().code(), Code::kUnavailable);
  EXPECT_EQ(ReadMemoryInfo(root_ + "/none").status().code(), Code::kUnavailable);
}

TEST_F(FakeRoot, AQuotaAllowsWholeProcessorsAndAtLeastOne) {
  Put("/proc/self/cgroup", "0::/\n");
  const uint32_t all = UsableCpus(root_);
  EXPECT_GE(all, 1u);
  Put("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(UsableCpus(root_), all);
  Put("/sys/fs/cgroup/cpu.max", "6400000 100000\n");
  EXPECT_EQ(UsableCpus(root_), std::min(all, 64u));
  Put("/sys/fs/cgroup/cpu.max", "199999 100000\n");
  EXPECT_EQ(UsableCpus(root_), 1u);
  Put("/sys/fs/cgroup/cpu.max", "5000 100000\n");
  EXPECT_EQ(UsableCpus(root_), 1u);
}

TEST_F(FakeRoot, Version1QuotaCountsAndMinusOneMeansNone) {
  Put("/proc/self/cgroup", "3:cpu,cpuacct:/x\n");
  Put("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  Put("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
  const uint32_t all = UsableCpus(root_);
  Put("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "100000\n");
  EXPECT_EQ(UsableCpus(root_), 1u);
  Put("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "100000000\n");
  EXPECT_EQ(UsableCpus(root_), all);
}

TEST(MemoryInfo, ThisMachineHasSome) {
  const MemoryInfo info = ReadMemoryInfo().value();
  EXPECT_GT(info.available_bytes, 0u);
  EXPECT_LE(info.available_bytes, info.total_bytes);
}

}  // namespace
}  // namespace cachalot
