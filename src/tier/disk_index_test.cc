#include "tier/disk_index.h"

#include <gtest/gtest.h>

#include "tier/disk_reclaim.h"
#include "tier/testing/disk_rig.h"

namespace cachalot::tier {
namespace {

FooterRecord RecordOf(uint64_t chain, uint64_t first, uint64_t count, uint64_t sequence) {
  const KvRun run = TestRun({}, chain, first, count);
  FooterRecord record{sequence * kDiskPage, {}};
  record.header.sequence = sequence;
  record.header.identity = run.identity;
  for (const KvRunBlock& block : run.blocks) record.header.blocks.push_back({block.key, 16, block.groups, 100, 100, 0});
  record.header.tokens = run.tokens;
  return record;
}

TEST(DiskIndex, TheHighestSequenceIsFoundInWhateverOrderTheyCome) {
  const Digest key = TestKey({}, 1, 0);
  for (const bool newest_first : {false, true}) {
    DiskIndex index;
    index.AddRecord(newest_first ? 2 : 1, RecordOf(1, 0, 1, newest_first ? 20 : 10), true, 0);
    index.AddRecord(newest_first ? 1 : 2, RecordOf(1, 0, 1, newest_first ? 10 : 20), true, 0);
    EXPECT_EQ(index.Find(key)->record.sequence, 20u);
    EXPECT_EQ(index.live_blocks(), 1u);
    EXPECT_EQ(index.live_bytes(), 100u);
    EXPECT_EQ(index.physical_blocks(), 2u);
    EXPECT_EQ(index.LiveBlocksOf(1), 0u);
    EXPECT_EQ(index.LiveBlocksOf(2), 1u);
  }
}

TEST(DiskIndex, WhatIsDroppedStaysKnownAsThereUntilItsSegmentIsForgotten) {
  DiskIndex index;
  index.AddRecord(1, RecordOf(1, 0, 3, 10), true, 0);
  index.AddRecord(1, RecordOf(2, 0, 1, 11), false, 0);  // failed to be written
  index.DropBefore(TestKey({}, 1, 0), 10);
  EXPECT_TRUE(index.Find(TestKey({}, 1, 0)));
  index.DropBefore(TestKey({}, 1, 0), 11);
  EXPECT_FALSE(index.Find(TestKey({}, 1, 0)));
  EXPECT_FALSE(index.Find(TestKey({}, 2, 0)));
  const auto keys = [&] {
    int count = 0;
    index.ForEachKey([&](const Digest&, uint64_t) { ++count; });
    return count;
  };
  EXPECT_EQ(keys(), 4);
  EXPECT_EQ(index.DropSegment(1), 2u);
  EXPECT_EQ(index.live_bytes(), 0u);
  EXPECT_EQ(keys(), 4);
  index.ForgetSegment(1);
  EXPECT_EQ(keys(), 0);
  EXPECT_EQ(index.physical_blocks(), 0u);
}

TEST(DiskIndex, TellsTheBlocksThatWereRead) {
  DiskIndex index;
  index.AddRecord(1, RecordOf(1, 0, 5, 10), true, 0);
  index.AddRecord(1, RecordOf(2, 0, 1, 11), true, 0);
  index.Touch(TestKey({}, 1, 1), 500);
  index.Touch(TestKey({}, 1, 4), 400);
  const std::vector<BlocksOfRecord> read = index.ReadBlocks(1);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].record.sequence, 10u);
  EXPECT_EQ(read[0].blocks, (std::vector<uint32_t>{1, 4}));
  EXPECT_DOUBLE_EQ(index.ValueOf(1, 500, 500), 4 * 100 / 2. + 200 + 200 / 1.2);
  EXPECT_EQ(index.ValueOf(2, 500, 500), 0);
}

TEST(DiskIndex, AccountsForItsMemory) {
  DiskIndex index;
  const uint64_t empty = index.MemoryBytes();
  for (uint64_t i = 0; i < 1000; ++i) index.AddRecord(1, RecordOf(i, 0, 10, i + 1), true, 0);
  const double per_block = static_cast<double>(index.MemoryBytes() - empty) / 10'000;
  EXPECT_GT(per_block, 100);
  EXPECT_LT(per_block, 300);
}

TEST(Reclaim, ABlockIsWorthMoreWhenReadAndLessWhenOld) {
  EXPECT_EQ(ValueOf({100, 50, false}, 50, 1000), 100);
  EXPECT_EQ(ValueOf({100, 50, true}, 50, 1000), 200);
  EXPECT_EQ(ValueOf({100, 50, true}, 1050, 1000), 100);
  EXPECT_EQ(ValueOf({100, 50, false}, 0, 0), 100);
}

TEST(Reclaim, TheSegmentOfLeastValuePerByteGoesFirst) {
  const auto least = [](std::vector<SegmentView> views) { return *LeastValuable(views); };
  EXPECT_EQ(least({{1, 1000, 500}, {2, 1000, 0}, {3, 100, 80}}), 2u);
  EXPECT_EQ(least({{1, 1000, 500}, {3, 100, 80}}), 1u);
  EXPECT_EQ(least({{7, 1000, 500}, {8, 1000, 500}}), 7u);
  EXPECT_FALSE(LeastValuable({}));
}

}  // namespace
}  // namespace cachalot::tier
