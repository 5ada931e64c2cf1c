#include "sim/sim_disk.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tier/testing/disk_rig.h"

namespace cachalot::sim {
namespace {

using tier::ChainShape;

constexpr uint64_t kChains = 40, kChainBlocks = 24;

// What both hold of every chain.
std::vector<bool> Held(const tier::RunStore& store, const ChainShape& shape) {
  std::vector<bool> held;
  for (uint64_t chain = 0; chain < kChains; ++chain) {
    for (uint64_t block = 0; block < kChainBlocks; ++block) {
      held.push_back(store.Find(tier::TestIdentity(shape.identity), tier::TestKey(shape, chain, block)).has_value());
    }
  }
  return held;
}

class SimDiskBesideDiskTier : public testing::TestWithParam<uint64_t> {};

TEST_P(SimDiskBesideDiskTier, SameCallsLeaveTheSameBlocks) {
  const ChainShape shape{.slot_bytes = GetParam() % 2 == 0 ? 1024u : 5000u, .groups = 3};
  const uint64_t slot_bytes = shape.slot_bytes;
  tier::DiskRig rig(3 << 20, 128 << 10);
  ASSERT_TRUE(rig.Open().ok());
  SimDisk sim(rig.options);
  SplitMix64 random(GetParam());
  for (int step = 0; step < 600; ++step) {
    const uint64_t chain = random.Below(kChains), first = random.Below(kChainBlocks);
    const uint64_t count = 1 + random.Below(kChainBlocks - first);
    const tier::KvRun run = TestRun(shape, chain, first, count);
    std::vector<std::byte> bytes(count * 2 * slot_bytes);
    switch (random.Below(8)) {
      case 0: {
        const std::vector<Digest> keys = {tier::TestKey(shape, chain, first)};
        ASSERT_TRUE(rig.tier->Erase(keys).ok());
        ASSERT_TRUE(sim.Erase(keys).ok());
        break;
      }
      case 1:
      case 2: ASSERT_EQ(rig.tier->Read(run, bytes).value(), sim.Read(run, bytes).value()); break;
      default: ASSERT_TRUE(rig.tier->Put(run, bytes).ok()); ASSERT_TRUE(sim.Put(run, bytes).ok());
    }
    if (step == 300) {
      ASSERT_TRUE(rig.tier->Seal().ok());
      ASSERT_TRUE(sim.Seal().ok());
    }
    if (step % 20 == 0) {
      ASSERT_EQ(Held(*rig.tier, shape), Held(sim, shape)) << step;
    }
    ASSERT_EQ(rig.tier->stats().occupied_bytes, sim.stats().occupied_bytes) << step;
  }
  EXPECT_GT(sim.stats().reclaimed_segments, 10u);
  EXPECT_GT(sim.stats().kept_blocks, 0u);
  EXPECT_EQ(rig.tier->stats().kept_blocks, sim.stats().kept_blocks);
  EXPECT_EQ(rig.tier->stats().reclaimed_blocks, sim.stats().reclaimed_blocks);
  ASSERT_TRUE(sim.Clear().ok());
  EXPECT_EQ(sim.stats().occupied_bytes, 0u);
  EXPECT_EQ(sim.stats().live_blocks, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimDiskBesideDiskTier, testing::Range<uint64_t>(1, 7));

TEST(SimDisk, ABlockThatFitsNoSegmentIsRefused) {
  SimDisk sim({.limit_bytes = 1 << 20});
  const ChainShape shape{.slot_bytes = 512 << 10};
  std::vector<std::byte> bytes(shape.slot_bytes);
  EXPECT_EQ(sim.Put(TestRun(shape, 0, 0, 1), bytes).code(), Code::kInvalid);
}

}  // namespace
}  // namespace cachalot::sim
