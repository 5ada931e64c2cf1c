#include "tier/numa_plan.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/random.h"

namespace cachalot::tier {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kMiB = uint64_t{1} << 20;

// A folder like /sys/devices/system/node, removed at the end.
class FakeNodes {
 public:
  FakeNodes() {
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("nodes_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~FakeNodes() { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  void AddNode(uint32_t id, const std::string& cpus, uint64_t free_kib, const std::string& distances) {
    const std::string node = "node" + std::to_string(id);
    Write(node + "/cpulist", cpus + "\n");
    Write(node + "/distance", distances + "\n");
    Write(node + "/meminfo", "Node 0 MemTotal:  999999999 kB\nNode 0 MemFree:  " + std::to_string(free_kib) +
                                 " kB\nNode 0 Active(file):  1024 kB\nNode 0 Inactive(file):  2048 kB\n");
  }
  std::string path() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
};

NumaTopology FourNodes(uint64_t available) {
  return {{{0, {0, 1}, available, {10, 12, 20, 20}},
           {1, {2, 3}, available, {12, 10, 20, 20}},
           {2, {4, 5}, available, {20, 20, 10, 12}},
           {3, {}, available, {20, 20, 12, 10}}}};
}

TEST(NumaTopology, TwoNodesAreReadFromTheFolder) {
  FakeNodes fake;
  fake.Write("online", "0-1\n");
  fake.AddNode(0, "0-3,8", 4096, "10 21");
  fake.AddNode(1, "4-7", 8192, "21 10");
  const Result<NumaTopology> read = ReadNumaTopology(fake.path());
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->nodes.size(), 2u);
  EXPECT_EQ(read->nodes[0].cpus, (std::vector<uint32_t>{0, 1, 2, 3, 8}));
  EXPECT_EQ(read->nodes[1].distances, (std::vector<uint32_t>{21, 10}));
  EXPECT_EQ(read->nodes[1].available_bytes, (8192u + 1024 + 2048) * 1024);
  EXPECT_EQ(NodesOf(*read, std::vector<uint32_t>{5}), std::vector<uint32_t>{1});
  EXPECT_EQ(NodesOf(*read, std::vector<uint32_t>{8, 4}), (std::vector<uint32_t>{0, 1}));
}

TEST(NumaTopology, FourNodesWithHolesAndOneWithoutProcessorsAreRead) {
  FakeNodes fake;
  fake.Write("online", "0,2,4-5\n");
  for (const uint32_t id : {0, 2, 4}) fake.AddNode(id, std::to_string(id), 4096, "10 20 20 20");
  fake.AddNode(5, "", 4096, "20 20 20 10");
  const Result<NumaTopology> read = ReadNumaTopology(fake.path());
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->nodes.size(), 4u);
  EXPECT_EQ(read->nodes[3].id, 5u);
  EXPECT_TRUE(read->nodes[3].cpus.empty());
}

TEST(NumaTopology, WhatIsNotUnderstoodIsUnavailable) {
  FakeNodes fake;
  EXPECT_EQ(ReadNumaTopology(fake.path()).status().code(), Code::kUnavailable);
  for (const char* online : {"", "x", "1-0", "0-", "0;1", "0-4294967295"}) {
    fake.Write("online", online);
    EXPECT_EQ(ReadNumaTopology(fake.path()).status().code(), Code::kUnavailable) << online;
  }
  fake.Write("online", "0-1");
  fake.AddNode(0, "0", 4096, "10 21");
  fake.AddNode(1, "1", 4096, "10");  // a distance is missing
  EXPECT_NE(ReadNumaTopology(fake.path()).status().message().find("expected 2"), std::string::npos);
  fake.AddNode(1, "1", 4096, "21 10");
  fake.Write("node1/meminfo", "nothing");
  EXPECT_NE(ReadNumaTopology(fake.path()).status().message().find("MemFree"), std::string::npos);
}

TEST(NumaPlan, MemoryLiesAtTheNearestNodeWhileItHasRoom) {
  const NumaPlan plan = PlanNuma(FourNodes(10 * kGiB), 8 * kGiB, std::vector<uint32_t>{2}, 0.8);
  EXPECT_EQ(plan.shares, (std::vector<NumaShare>{{2, 10, 0, 8 * kGiB}}));
  EXPECT_EQ(Describe(plan), "node 2 (distance 10): 8 GiB");
}

TEST(NumaPlan, WhatDoesNotFitGoesToTheNextNearest) {
  const NumaPlan plan = PlanNuma(FourNodes(10 * kGiB), 20 * kGiB, std::vector<uint32_t>{2}, 0.8);
  EXPECT_EQ(plan.shares, (std::vector<NumaShare>{{2, 10, 0, 8 * kGiB},
                                                 {3, 12, 8 * kGiB, 8 * kGiB},
                                                 {0, 20, 16 * kGiB, 2 * kGiB},
                                                 {1, 20, 18 * kGiB, 2 * kGiB}}));
}

TEST(NumaPlan, NodesEquallyNearShareAsEvenlyAsTheirMemoryAllows) {
  NumaTopology topology = FourNodes(10 * kGiB);
  topology.nodes[1].available_bytes = kGiB;
  const std::vector<uint32_t> near = {0, 1, 2};
  const NumaPlan plan = PlanNuma(topology, 7 * kGiB, near, 1.0);
  EXPECT_EQ(plan.shares,
            (std::vector<NumaShare>{{0, 10, 0, 3 * kGiB}, {1, 10, 3 * kGiB, kGiB}, {2, 10, 4 * kGiB, 3 * kGiB}}));
}

TEST(NumaPlan, WithoutAPlaceToBeNearToAllNodesShare) {
  const NumaPlan plan = PlanNuma(FourNodes(10 * kGiB), 4 * kGiB + 1, {}, 0.8);
  ASSERT_EQ(plan.shares.size(), 4u);
  for (const NumaShare& share : plan.shares) EXPECT_LE(share.bytes, kGiB + 2 * kMiB);
  EXPECT_EQ(plan.unplaced_bytes, 0u);
}

TEST(NumaPlan, WhatNoNodeHasRoomForIsLeftToTheSystemAndSaid) {
  const NumaPlan plan = PlanNuma(FourNodes(kGiB), 5 * kGiB, std::vector<uint32_t>{0}, 1.0);
  EXPECT_EQ(plan.unplaced_bytes, kGiB);
  EXPECT_NE(Describe(plan).find("wherever there is room: 1 GiB"), std::string::npos);
}

TEST(NumaPlan, RandomPlansCoverEveryByteOnceAndRespectEachNode) {
  SplitMix64 random(1);
  for (int round = 0; round < 2000; ++round) {
    NumaTopology topology;
    const auto nodes = static_cast<uint32_t>(1 + random.Below(6));
    for (uint32_t id = 0; id < nodes; ++id) {
      NumaNode node{.id = 3 * id, .available_bytes = random.Below(64 * kMiB)};
      for (uint32_t to = 0; to < nodes; ++to) {
        node.distances.push_back(to == id ? 10u : static_cast<uint32_t>(11 + random.Below(3)));
      }
      topology.nodes.push_back(node);
    }
    std::vector<uint32_t> near;
    for (uint64_t i = random.Below(3); i > 0; --i) near.push_back(static_cast<uint32_t>(random.Below(20)));
    const uint64_t bytes = random.Below(128 * kMiB);
    const NumaPlan plan = PlanNuma(topology, bytes, near, 0.8);
    uint64_t offset = 0;
    for (const NumaShare& share : plan.shares) {
      ASSERT_EQ(share.offset, offset);
      ASSERT_GT(share.bytes, 0u);
      ASSERT_LE(share.bytes, topology.nodes[share.node / 3].available_bytes * 8 / 10 + 1);
      offset += share.bytes;
    }
    ASSERT_EQ(offset + plan.unplaced_bytes, bytes);
  }
}

TEST(NumaTopology, ThisMachineIsReadWhereItTells) {
  const Result<NumaTopology> read = ReadNumaTopology();
  if (!read.ok()) GTEST_SKIP() << read.status().message();
  EXPECT_FALSE(read->nodes.empty());
  EXPECT_FALSE(AffinityCpus().empty());
}

}  // namespace
}  // namespace cachalot::tier
