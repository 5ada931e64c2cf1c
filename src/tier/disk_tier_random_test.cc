#include <atomic>
#include <thread>
#include <vector>

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

TEST(DiskTierRandom, WhoReadsWhileOthersReadAndOneWritesGetsTheRightBytesOrNone) {
  const ChainShape shape{};
  DiskRig rig(1 << 20, 64 << 10);
  rig.options.packed_element_bytes = 2;
  ASSERT_TRUE(rig.Open().ok());
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> read{0};
  const auto read_on = [&](uint64_t seed) {
    SplitMix64 random(seed);
    while (!stop) {
      const uint64_t chain = random.Below(30), first = random.Below(12);
      const KvRun run = TestRun(shape, chain, first, 12 - first);
      std::vector<std::byte> into(run.blocks.size() * shape.slot_bytes);
      const std::vector<ReadOutcome> outcomes = rig.tier->Read(run, into).value();
      for (size_t i = 0; i < outcomes.size(); ++i) {
        if (outcomes[i] != ReadOutcome::kRead) continue;
        ++read;
        const std::span<const std::byte> block = std::span(into).subspan(i * shape.slot_bytes, shape.slot_bytes);
        EXPECT_TRUE(std::ranges::equal(block, TestBlockBytes(run.blocks[i].key, shape.slot_bytes)));
      }
      (void)rig.tier->reads();
    }
  };
  std::vector<std::thread> readers;
  for (uint64_t seed = 1; seed <= 3; ++seed) readers.emplace_back(read_on, seed);
  SplitMix64 random(9);
  for (int step = 0; step < 400 || read < 1000; ++step) {
    const uint64_t chain = random.Below(30);
    EXPECT_TRUE(rig.Put(shape, chain, 0, 12).ok());
    if (step % 7 == 0) {
      const Digest key = TestKey(shape, random.Below(30), random.Below(12));
      EXPECT_TRUE(rig.tier->Erase(std::span(&key, 1)).ok());
    }
    if (step % 50 == 49) {
      EXPECT_TRUE(rig.tier->Clear().ok());
    }
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(rig.tier->reads().blocks[static_cast<size_t>(ReadOutcome::kUnreadable)], 0u);
  EXPECT_EQ(rig.tier->reads().blocks[static_cast<size_t>(ReadOutcome::kRead)], read);
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
