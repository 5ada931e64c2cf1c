#include <gtest/gtest.h>

#include "tier/testing/disk_model.h"

namespace cachalot::tier {
namespace {

uint64_t RunModel(DiskModelOptions options, uint64_t seeds, uint64_t steps) {
  uint64_t read = 0;
  for (uint64_t seed = 1; seed <= seeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    options.seed = seed;
    DiskModel model(options);
    for (uint64_t i = 0; i < steps && !::testing::Test::HasFailure(); ++i) model.Step();
    read += model.read_blocks();
  }
  return read;
}

TEST(DiskTierRandom, WithRoomForAllNothingThatWasFlushedIsEverMissing) {
  EXPECT_GT(RunModel({.limit_bytes = 64 << 20, .segment_bytes = 128 << 10, .chains = 8, .crashes = 0.05}, 6, 150),
            100u);
}

TEST(DiskTierRandom, WithLittleRoomTheLimitHolds) {
  EXPECT_GT(RunModel({.limit_bytes = 1 << 20, .segment_bytes = 64 << 10, .crashes = 0.03}, 4, 300), 100u);
}

TEST(DiskTierRandom, FailingOperationsCostBlocksNeverTruth) {
  EXPECT_GT(RunModel({.limit_bytes = 2 << 20, .crashes = 0.05, .faults = 0.3}, 6, 200), 100u);
}

TEST(DiskTierRandom, FlippedBitsCostBlocksNeverTruth) {
  EXPECT_GT(RunModel({.limit_bytes = 2 << 20, .crashes = 0.05, .faults = 0.05, .flips = 0.2}, 6, 200), 100u);
}

TEST(DiskTierRandom, WhicheverOperationFailsTheTierGoesOn) {
  const ChainShape shape{};
  for (uint64_t nth = 1; nth < 120; ++nth) {
    DiskRig rig(1 << 20, 32 << 10);
    rig.files->Fail({.op = FileOp::kAny, .nth = nth});
    const bool opened = rig.Open().ok();
    ASSERT_TRUE(opened || rig.Open().ok()) << nth;
    std::vector<Digest> erased;
    for (uint64_t chain = 0; chain < 12; ++chain) {
      (void)rig.Put(shape, chain, 0, 12);
      (void)rig.Read(shape, chain, 3);
      const Digest key = TestKey(shape, chain, 5);
      if (rig.tier->Erase(std::span(&key, 1)).ok()) erased.push_back(key);
      if (chain % 4 == 0) (void)rig.tier->Flush();
    }
    EXPECT_GE(erased.size(), 10u) << nth;
    EXPECT_TRUE(rig.tier->health().ok());
    ASSERT_TRUE(rig.Crash(Unsynced::kMixed, nth).ok()) << nth;
    for (const Digest& key : erased) EXPECT_FALSE(rig.tier->Find(key)) << nth;
    EXPECT_LE(rig.Occupied(), rig.options.limit_bytes);
  }
}

}  // namespace
}  // namespace cachalot::tier
