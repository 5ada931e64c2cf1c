#include "tier/disk_tier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "tier/testing/disk_rig.h"

namespace cachalot::tier {
namespace {

constexpr ChainShape kShape{};

void ExpectThere(DiskRig& rig, const ChainShape& shape, uint64_t chain, uint64_t block, uint64_t version = 0) {
  const DiskRig::ReadBlock read = rig.Read(shape, chain, block);
  ASSERT_EQ(read.outcome, ReadOutcome::kRead) << NameOf(read.outcome) << " " << chain << " " << block;
  EXPECT_EQ(read.bytes, TestBlockBytes(TestKey(shape, chain, block), read.bytes.size(), version));
}

uint64_t Counted(const DiskRig& rig, ReadOutcome outcome) {
  return rig.tier->reads().blocks[static_cast<size_t>(outcome)];
}

TEST(DiskTier, GivesBackWhatWasPut) {
  for (const uint32_t slot_bytes : {1u, 100u, 1024u, 4096u, 8192u}) {
    const ChainShape shape{.slot_bytes = slot_bytes, .groups = 0b101};
    DiskRig rig;
    ASSERT_TRUE(rig.Open().ok());
    ASSERT_TRUE(rig.Put(shape, 1, 0, 10).ok());
    EXPECT_EQ(rig.tier->Find(TestKey(shape, 1, 3)), (DiskBlock{16, 0b101, 2 * slot_bytes, 2 * slot_bytes}));
    const KvRun run = TestRun(shape, 1, 2, 6);
    AlignedBytes memory;
    for (const uint64_t shift : {0, 8}) {  // with and without a copy
      const std::span<std::byte> into = memory.Resize(kDiskPage + 12 * slot_bytes).subspan(shift, 12 * slot_bytes);
      EXPECT_EQ(rig.tier->Read(run, into).value(), std::vector<ReadOutcome>(6, ReadOutcome::kRead));
      EXPECT_TRUE(std::ranges::equal(into, TestBytes(run, shape)));
    }
  }
}

TEST(DiskTier, BlocksArePackedWhereThatMakesThemSmaller) {
  for (const uint32_t element_bytes : {1u, 2u, 4u}) {
    for (const uint32_t slot_bytes : {1u, 100u, 1024u, 4096u, 4099u}) {
      const ChainShape shape{.slot_bytes = slot_bytes, .groups = 0b101};
      DiskRig rig;
      rig.options.packed_element_bytes = element_bytes;
      ASSERT_TRUE(rig.Open().ok());
      ASSERT_TRUE(rig.Put(shape, 1, 0, 20).ok());
      const DiskTierStats stats = rig.tier->stats();
      EXPECT_EQ(stats.raw_bytes, 40 * slot_bytes);
      EXPECT_LE(stats.put_bytes, slot_bytes < 1000 ? stats.raw_bytes : stats.raw_bytes * 9 / 10);
      EXPECT_EQ(stats.live_bytes, stats.put_bytes);
      ASSERT_TRUE(rig.Crash(Unsynced::kKept).ok());
      EXPECT_EQ(rig.tier->stats().live_bytes, stats.put_bytes);
      const KvRun run = TestRun(shape, 1, 3, 11);
      std::vector<std::byte> into(22 * slot_bytes);
      EXPECT_EQ(rig.tier->Read(run, into).value(), std::vector<ReadOutcome>(11, ReadOutcome::kRead));
      EXPECT_EQ(into, TestBytes(run, shape));
    }
  }
}

TEST(DiskTier, AReadTakesItsBytesOffTheDiskOnce) {
  const ChainShape shape{.slot_bytes = 2 * kDiskPage};
  DiskRig rig;
  ASSERT_TRUE(rig.Open().ok());
  ASSERT_TRUE(rig.Put(shape, 1, 0, 4).ok());
  const KvRun run = TestRun(shape, 1, 0, 4);
  AlignedBytes memory;
  const uint64_t before = rig.files->counts().bytes_read;
  ASSERT_TRUE(rig.tier->Read(run, memory.Resize(8 * kDiskPage)).ok());
  EXPECT_EQ(rig.files->counts().bytes_read - before, 9 * kDiskPage) << "the record's header and four blocks";
}

TEST(DiskTier, WhereLittleRoomIsLeftASegmentIsSmaller) {
  DiskRig rig;
  ASSERT_TRUE(rig.Open().ok());
  rig.files->SetTotalBytes(rig.Occupied() + (100 << 10));  // segments have 256 KiB
  ASSERT_TRUE(rig.Put(kShape, 1, 0, 10).ok());
  EXPECT_LE(rig.tier->stats().occupied_bytes, 100u << 10);
  ExpectThere(rig, kShape, 1, 9);
  ASSERT_TRUE(rig.Crash(Unsynced::kKept).ok());
  ExpectThere(rig, kShape, 1, 9);
}

TEST(DiskTier, ARunOfSeveralRecordsIsReadAsOne) {
  DiskRig rig;
  rig.options.record_bytes = 16 << 10;
  ASSERT_TRUE(rig.Open().ok());
  ASSERT_TRUE(rig.Put(kShape, 1, 0, 100).ok());
  EXPECT_EQ(rig.tier->stats().put_records, 7u);
  const KvRun run = TestRun(kShape, 1, 0, 101);
  std::vector<std::byte> into(101 * kShape.slot_bytes);
  std::vector<ReadOutcome> expected(101, ReadOutcome::kRead);
  expected.back() = ReadOutcome::kMissing;
  EXPECT_EQ(rig.tier->Read(run, into).value(), expected);
  const std::vector<std::byte> bytes = TestBytes(run, kShape);
  EXPECT_TRUE(std::equal(into.begin(), into.end() - kShape.slot_bytes, bytes.begin()));
}

TEST(DiskTier, MatchesLeadingBlocksOfItsIdentity) {
  DiskRig rig;
  ASSERT_TRUE(rig.Open().ok());
  ASSERT_TRUE(rig.Put(kShape, 1, 0, 5).ok());
  ASSERT_TRUE(rig.Put(kShape, 1, 6, 2).ok());
  std::vector<Digest> keys;
  for (const KvRunBlock& block : TestRun(kShape, 1, 0, 8).blocks) keys.push_back(block.key);
  EXPECT_EQ(rig.tier->Match(TestIdentity(1), keys).size(), 5u);
  EXPECT_EQ(rig.tier->Match(TestIdentity(2), keys).size(), 0u);
  EXPECT_EQ(rig.tier->Match(TestIdentity(1), {}).size(), 0u);
}

TEST(DiskTier, WhatIsNoRunIsRefused) {
  DiskRig rig;
  ASSERT_TRUE(rig.Open().ok());
  const KvRun good = TestRun(kShape, 1, 0, 2);
  const std::vector<std::byte> bytes = TestBytes(good, kShape);
  EXPECT_EQ(rig.tier->Put({}, bytes).code(), Code::kInvalid);
  EXPECT_EQ(rig.tier->Put(good, std::span(bytes).first(2047)).code(), Code::kInvalid);
  EXPECT_EQ(rig.tier->Put(good, {}).code(), Code::kInvalid);
  KvRun bad = good;
  bad.tokens.pop_back();
  EXPECT_EQ(rig.tier->Put(bad, bytes).code(), Code::kInvalid);
  bad = good;
  bad.blocks[0].groups = 0;
  EXPECT_EQ(rig.tier->Put(bad, bytes).code(), Code::kInvalid);
  const ChainShape large{.slot_bytes = 1 << 20};
  const Status status = rig.Put(large, 1, 0, 1);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_EQ(status.message(),
            "a block of 1 MiB does not fit a segment of 256 KiB: the disk tier needs a larger size or segments");
  EXPECT_TRUE(rig.tier->health().ok());
}

TEST(DiskTier, AReadComparesTokensIdentityAndGroups) {
  DiskRig rig;
  ASSERT_TRUE(rig.Open().ok());
  ASSERT_TRUE(rig.Put(kShape, 1, 0, 3).ok());
  const KvRun run = TestRun(kShape, 1, 0, 3);
  std::vector<std::byte> into(3 * kShape.slot_bytes), one(kShape.slot_bytes);

  KvRun other = TestRun(kShape, 1, 2, 1);
  other.blocks[0].groups = 0b10;
  EXPECT_EQ(rig.tier->Read(other, one)->at(0), ReadOutcome::kMissing);
  EXPECT_TRUE(rig.tier->Find(other.blocks[0].key));  // as it is, it is good

  other = run;
  other.tokens[20] += 1;
  using enum ReadOutcome;
  EXPECT_EQ(rig.tier->Read(other, into).value(), (std::vector<ReadOutcome>{kRead, kForeign, kRead}));
  EXPECT_EQ(rig.tier->Read(run, into).value(), (std::vector<ReadOutcome>{kRead, kMissing, kRead}));
  other = TestRun(kShape, 1, 0, 1);
  other.identity = TestIdentity(2);
  EXPECT_EQ(rig.tier->Read(other, one)->at(0), kStaleIdentity);
  EXPECT_EQ(rig.tier->Read(run, into).value(), (std::vector<ReadOutcome>{kMissing, kMissing, kRead}));
  EXPECT_EQ(Counted(rig, kStaleIdentity), 1u);
  EXPECT_EQ(CodeOf(kStaleIdentity), Code::kCorrupt);
}

// Three records of one segment, of two blocks each: the first lacks a block that is asked for, the last is damaged.
TEST(DiskTier, OneRecordOfARunThatCannotBeReadLeavesTheOthers) {
  using enum ReadOutcome;
  const ChainShape shape{.slot_bytes = kDiskPage};
  DiskRig rig;
  ASSERT_TRUE(rig.Open().ok());
  for (const uint64_t first : {0, 2, 4}) ASSERT_TRUE(rig.Put(shape, 1, first, 2).ok());
  ASSERT_TRUE(rig.tier->Flush().ok());
  const uint64_t end_of_second = kDiskPage + 2 * 3 * kDiskPage;  // a page of header, two of blocks
  rig.files->Cut(rig.Segments().at(0), end_of_second + 2 * kDiskPage);
  const KvRun run = TestRun(shape, 1, 1, 5);
  AlignedBytes memory;
  const std::span<std::byte> into = memory.Resize(5 * kDiskPage);
  const std::vector<std::byte> wanted = TestBytes(run, shape);
  EXPECT_EQ(rig.tier->Read(run, into).value(), (std::vector{kRead, kRead, kRead, kTruncated, kTruncated}));
  EXPECT_TRUE(std::ranges::equal(into.first(3 * kDiskPage), std::span(wanted).first(3 * kDiskPage)));
  EXPECT_EQ(Counted(rig, kRead), 3u);
  EXPECT_EQ(Counted(rig, kTruncated), 2u);
}

TEST(DiskTier, EveryKindOfDamageIsAMissOfItsOwn) {
  using enum ReadOutcome;
  const auto rig = [](auto damage, ReadOutcome expected) {
    DiskRig r;
    r.options.open_files = 1;
    EXPECT_TRUE(r.Open().ok());
    EXPECT_TRUE(r.Put(kShape, 1, 0, 1).ok());
    EXPECT_TRUE(r.tier->Seal().ok());
    EXPECT_TRUE(r.Put(kShape, 2, 0, 1).ok());
    damage(*r.files, r.Segments().at(0));
    EXPECT_EQ(r.Read(kShape, 1, 0).outcome, expected) << NameOf(expected);
    r.files->Heal();
    EXPECT_EQ(r.Read(kShape, 1, 0).outcome, kMissing);  // dropped
    EXPECT_EQ(Counted(r, expected), expected == kMissing ? 2u : 1u);
    ExpectThere(r, kShape, 2, 0);
  };
  rig([](FaultFileSystem& f, const std::string& path) { f.FlipBit(path, (2 * kDiskPage + 5) * 8); }, kBitFlip);
  rig([](FaultFileSystem& f, const std::string& path) { f.FlipBit(path, (kDiskPage + 150) * 8); }, kBitFlip);
  rig([](FaultFileSystem& f, const std::string& path) { f.Cut(path, 2 * kDiskPage + 5); }, kTruncated);
  rig([](FaultFileSystem& f, const std::string& path) { EXPECT_TRUE(f.Remove(path).ok()); }, kUnreadable);
  rig([](FaultFileSystem& f, const std::string&) { f.Fail({.op = FileOp::kRead, .nth = 2}); }, kUnreadable);
  rig(
      [](FaultFileSystem& f, const std::string& path) {
        // The same record as another segment would hold it.
        std::vector<std::byte> bytes = f.Contents(path);
        RecordHeader header = DecodeRecordHeader(std::span(bytes).subspan(kDiskPage)).value();
        header.uuid[0] ^= 1;
        std::ranges::copy(EncodeRecordHeader(header), bytes.begin() + kDiskPage);
        f.SetContents(path, bytes);
      },
      kForeign);
}

TEST(DiskTier, IsFoundAgainAfterARestart) {
  for (const bool sealed : {false, true}) {
    DiskRig rig;
    ASSERT_TRUE(rig.Open().ok());
    ASSERT_TRUE(rig.Put(kShape, 1, 0, 20).ok());
    ASSERT_TRUE((sealed ? rig.tier->Seal() : rig.tier->Flush()).ok());
    ASSERT_TRUE(rig.Crash(Unsynced::kLost).ok());
    EXPECT_EQ(rig.tier->stats().recovered_sealed, sealed ? 1u : 0u);
    EXPECT_EQ(rig.tier->stats().recovered_scanned, sealed ? 0u : 1u);
    EXPECT_EQ(rig.tier->stats().live_blocks, 20u);
    for (uint64_t block = 0; block < 20; ++block) ExpectThere(rig, kShape, 1, block);
    // What was scanned is sealed by now.
    ASSERT_TRUE(rig.Open().ok());
    EXPECT_EQ(rig.tier->stats().recovered_sealed, 1u);
  }
}

TEST(DiskTier, OnlyFootersOfSealedSegmentsAreRead) {
  DiskRig rig;
  ASSERT_TRUE(rig.Open().ok());
  for (uint64_t chain = 0; chain < 10; ++chain) ASSERT_TRUE(rig.Put(kShape, chain, 0, 100).ok());
  ASSERT_TRUE(rig.tier->Seal().ok());
  ASSERT_GT(rig.tier->stats().segments, 3u);
  const uint64_t before = rig.files->counts().bytes_read;
  ASSERT_TRUE(rig.Open().ok());
  EXPECT_EQ(rig.tier->stats().live_blocks, 1000u);
  EXPECT_LT(rig.files->counts().bytes_read - before, 1000 * 130 + 20 * kDiskPage);
}

TEST(DiskTier, TheNewestOfTwoIsFoundAlsoAfterARestart) {
  DiskRig rig;
  ASSERT_TRUE(rig.Open().ok());
  ASSERT_TRUE(rig.Put(kShape, 1, 0, 3, 1).ok());
  ASSERT_TRUE(rig.tier->Seal().ok());
  ASSERT_TRUE(rig.Put(kShape, 1, 1, 1, 2).ok());
  ExpectThere(rig, kShape, 1, 1, 2);
  ASSERT_TRUE(rig.tier->Flush().ok());
  ASSERT_TRUE(rig.Crash(Unsynced::kLost).ok());
  ExpectThere(rig, kShape, 1, 0, 1);
  ExpectThere(rig, kShape, 1, 1, 2);
  // A copy of which the crash left only part does not hide the older.
  ASSERT_TRUE(rig.Put(kShape, 1, 1, 1, 3).ok());
  ASSERT_TRUE(rig.Crash(Unsynced::kLost).ok());
  ExpectThere(rig, kShape, 1, 1, 2);
}

TEST(DiskTier, AFooterWhoseRecordsDidNotReachTheDiskHidesNothing) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    DiskRig rig;
    ASSERT_TRUE(rig.Open().ok());
    ASSERT_TRUE(rig.Put(kShape, 1, 0, 1).ok());
    ASSERT_TRUE(rig.tier->Seal().ok());
    ASSERT_TRUE(rig.Put(kShape, 2, 0, 1).ok());
    ASSERT_TRUE(rig.tier->Flush().ok());
    ASSERT_TRUE(rig.Put(kShape, 1, 0, 1).ok());
    rig.files->Fail({.op = FileOp::kSync});
    rig.files->Fail({.op = FileOp::kRemove});
    ASSERT_FALSE(rig.tier->Seal().ok());
    ASSERT_TRUE(rig.Crash(Unsynced::kMixed, seed).ok());
    ExpectThere(rig, kShape, 1, 0);
    ExpectThere(rig, kShape, 2, 0);
  }
}

TEST(DiskTier, RecordsOfARecycledFileAreNotTakenForNewOnes) {
  DiskRig rig;
  ASSERT_TRUE(rig.Open().ok());
  ASSERT_TRUE(rig.Put(kShape, 1, 0, 3).ok());
  ASSERT_TRUE(rig.tier->Flush().ok());
  const std::vector<std::byte> old = rig.files->Contents(rig.Segments().at(0));
  ASSERT_TRUE(rig.tier->Clear().ok());
  ASSERT_TRUE(rig.Put(kShape, 2, 0, 3).ok());
  ASSERT_TRUE(rig.tier->Flush().ok());
  // Behind the new segment's only record lie the bytes of the old one's.
  const std::string path = rig.Segments().at(0);
  std::vector<std::byte> bytes = rig.files->Contents(path);
  const uint64_t record_bytes = 2 * kDiskPage;
  std::copy_n(old.begin() + kDiskPage, record_bytes, bytes.begin() + kDiskPage + record_bytes);
  rig.files->SetContents(path, bytes);
  ASSERT_TRUE(rig.Open().ok());
  EXPECT_FALSE(rig.tier->Find(TestKey(kShape, 1, 0)));
  ExpectThere(rig, kShape, 2, 2);
}

TEST(DiskTier, WhatWasErasedStaysGone) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    DiskRig rig;
    ASSERT_TRUE(rig.Open().ok());
    ASSERT_TRUE(rig.Put(kShape, 1, 0, 6).ok());
    if (seed % 2 == 0) {
      ASSERT_TRUE(rig.tier->Seal().ok());
    }
    ASSERT_TRUE(rig.Put(kShape, 1, 0, 2).ok());  // a second copy, unsynced
    const std::vector<Digest> keys{TestKey(kShape, 1, 1), TestKey(kShape, 1, 4), TestKey(kShape, 9, 9)};
    ASSERT_TRUE(rig.tier->Erase(keys).ok());
    EXPECT_FALSE(rig.tier->Find(keys[0]));
    if (seed % 3 == 0) {
      ASSERT_TRUE(rig.Put(kShape, 1, 1, 1).ok());
    }
    if (seed % 3 == 0) {
      ASSERT_TRUE(rig.tier->Flush().ok());
    }
    for (int restart = 0; restart < 3; ++restart) {
      ASSERT_TRUE(rig.Crash(Unsynced::kMixed, seed).ok());
      EXPECT_EQ(rig.tier->Find(keys[0]).has_value(), seed % 3 == 0);
      EXPECT_FALSE(rig.tier->Find(keys[1]));
      if (seed % 2 == 0) {
        EXPECT_TRUE(rig.tier->Find(TestKey(kShape, 1, 5)));
      }
    }
  }
}

TEST(DiskTier, DeletionsAreForgottenWithTheSegmentsThatTheyConcern) {
  DiskRig rig;
  ASSERT_TRUE(rig.Open().ok());
  ASSERT_TRUE(rig.Put(kShape, 1, 0, 2).ok());
  ASSERT_TRUE(rig.tier->Seal().ok());
  const std::vector<Digest> keys{TestKey(kShape, 1, 0), TestKey(kShape, 1, 1)};
  ASSERT_TRUE(rig.tier->Erase(std::span(keys).first(1)).ok());
  ASSERT_TRUE(rig.Open().ok());
  EXPECT_EQ(rig.tier->stats().deletions, 1u);
  EXPECT_EQ(rig.tier->stats().segments, 1u);
  ASSERT_TRUE(rig.tier->Erase(keys).ok());
  EXPECT_EQ(rig.tier->stats().segments, 0u);  // none of its blocks is left
  ASSERT_TRUE(rig.Open().ok());
  EXPECT_EQ(rig.tier->stats().deletions, 0u);
}

TEST(DiskTier, MoreDeletionsThanTheLogHoldsCostSegmentsNotTruth) {
  const ChainShape shape{.slot_bytes = 64};
  DiskRig rig(1 << 20, 64 << 10);
  ASSERT_TRUE(rig.Open().ok());
  for (uint64_t round = 0; round < 30; ++round) {
    ASSERT_TRUE(rig.Put(shape, round, 0, 100).ok());
    std::vector<Digest> keys;
    for (uint64_t i = 0; i < 99; ++i) keys.push_back(TestKey(shape, round, i));
    ASSERT_TRUE(rig.tier->Erase(keys).ok());
    ASSERT_LE(rig.Occupied(), rig.options.limit_bytes);
  }
  EXPECT_GT(rig.tier->stats().reclaimed_segments, 0u);
  ASSERT_TRUE(rig.Crash(Unsynced::kMixed, 1).ok());
  for (uint64_t round = 0; round < 30; ++round) EXPECT_FALSE(rig.tier->Find(TestKey(shape, round, 5))) << round;
}

TEST(DiskTier, ARecordThatFailedToBeWrittenAndIsThereAllTheSameStaysErased) {
  DiskRig rig(1 << 20, 64 << 10), twin(1 << 20, 64 << 10);  // they write the same bytes
  for (DiskRig* r : {&rig, &twin}) {
    ASSERT_TRUE(r->Open().ok());
    ASSERT_TRUE(r->Put(kShape, 1, 0, 1).ok());
  }
  rig.files->Fail({.op = FileOp::kWrite});
  ASSERT_FALSE(rig.Put(kShape, 2, 0, 1).ok());
  ASSERT_TRUE(twin.Put(kShape, 2, 0, 1).ok());
  rig.files->SetContents(rig.Segments().at(0), twin.files->Contents(twin.Segments().at(0)));
  const Digest key = TestKey(kShape, 2, 0);
  ASSERT_TRUE(rig.tier->Erase(std::span(&key, 1)).ok());
  // So many that those are forgotten of which nothing is there.
  std::vector<Digest> others;
  for (uint64_t i = 0; i < 1000; ++i) others.push_back(TestKey(kShape, 3, i));
  ASSERT_TRUE(rig.tier->Erase(others).ok());
  EXPECT_EQ(rig.tier->stats().deletions, 1u);
  ASSERT_TRUE(rig.Crash(Unsynced::kKept).ok());
  EXPECT_FALSE(rig.tier->Find(key));
  ASSERT_TRUE(twin.Crash(Unsynced::kKept).ok());
  EXPECT_TRUE(twin.tier->Find(key));
}

TEST(DiskTier, WithoutItsDeletionsAFolderIsEmptied) {
  for (const bool missing : {false, true}) {
    DiskRig rig;
    ASSERT_TRUE(rig.Open().ok());
    ASSERT_TRUE(rig.Put(kShape, 1, 0, 2).ok());
    ASSERT_TRUE(rig.tier->Seal().ok());
    const std::string path = fmt::format("{}/{}", kTestFolder, kDeletionFile);
    if (missing) {
      ASSERT_TRUE(rig.files->Remove(path).ok());
    } else {
      rig.files->Cut(path, 100);
    }
    ASSERT_TRUE(rig.Open().ok());
    EXPECT_EQ(rig.tier->stats().discarded_segments, 1u);
    EXPECT_EQ(rig.tier->stats().live_blocks, 0u);
    EXPECT_TRUE(rig.Segments().empty());
    EXPECT_TRUE(rig.Put(kShape, 1, 0, 2).ok());
  }
}

TEST(DiskTier, ClearedIsEmptyAfterARestart) {
  DiskRig rig;
  ASSERT_TRUE(rig.Open().ok());
  for (uint64_t chain = 0; chain < 5; ++chain) ASSERT_TRUE(rig.Put(kShape, chain, 0, 100).ok());
  ASSERT_TRUE(rig.tier->Flush().ok());
  ASSERT_TRUE(rig.tier->Clear().ok());
  ASSERT_TRUE(rig.Crash(Unsynced::kMixed, 3).ok());
  EXPECT_EQ(rig.tier->stats().live_blocks, 0u);
  EXPECT_EQ(rig.tier->stats().segments, 0u);
}

TEST(DiskTier, StaysWithinItsLimitAndKeepsWhatIsRead) {
  DiskRig rig(2 << 20, 128 << 10);
  ASSERT_TRUE(rig.Open().ok());
  ASSERT_TRUE(rig.Put(kShape, 0, 0, 4).ok());
  for (uint64_t chain = 1; chain < 300; ++chain) {
    ASSERT_TRUE(rig.Put(kShape, chain, 0, 20).ok());
    ASSERT_LE(rig.Occupied(), rig.options.limit_bytes);
    ExpectThere(rig, kShape, 0, 1);
  }
  const DiskTierStats stats = rig.tier->stats();
  EXPECT_GT(stats.reclaimed_segments, 20u);
  EXPECT_GT(stats.kept_blocks, 0u);
  EXPECT_GT(stats.occupied_bytes, rig.options.limit_bytes * 2 / 3);
  EXPECT_FALSE(rig.tier->Find(TestKey(kShape, 1, 0)));
  ExpectThere(rig, kShape, 299, 19);
}

TEST(DiskTier, KeepsWhatSomebodyWillRead) {
  DiskRig rig(2 << 20, 128 << 10);
  ASSERT_TRUE(rig.Open().ok());
  ASSERT_TRUE(rig.Put(kShape, 0, 0, 4).ok());
  const std::array<Digest, 2> awaited = {TestKey(kShape, 0, 0), TestKey(kShape, 0, 1)};
  for (uint64_t chain = 1; chain < 300; ++chain) {
    rig.tier->Touch(awaited);
    ASSERT_TRUE(rig.Put(kShape, chain, 0, 20).ok());
  }
  EXPECT_EQ(rig.tier->reads().bytes, 0u);
  ExpectThere(rig, kShape, 0, 1);
  EXPECT_FALSE(rig.tier->Find(TestKey(kShape, 1, 0)));
}

TEST(DiskTier, AFlushedBlockOutlivesTheSegmentThatHeldItsOlderCopy) {
  DiskRig rig(2 << 20, 128 << 10);
  ASSERT_TRUE(rig.Open().ok());
  ASSERT_TRUE(rig.Put(kShape, 0, 0, 1).ok());
  ASSERT_TRUE(rig.tier->Flush().ok());
  while (rig.tier->stats().reclaimed_segments == 0) {
    for (int i = 0; i < 5; ++i) ExpectThere(rig, kShape, 0, 0);
    ASSERT_TRUE(rig.Put(kShape, rig.tier->stats().put_records, 0, 20).ok());
  }
  ASSERT_TRUE(rig.tier->Find(TestKey(kShape, 0, 0)));
  for (uint64_t seed = 0; seed < 20; ++seed) {
    DiskRig after(2 << 20, 128 << 10);
    after.files = rig.files->AfterCrash(Unsynced::kMixed, seed);
    ASSERT_TRUE(after.Open().ok());
    ExpectThere(after, kShape, 0, 0);
  }
}

TEST(DiskTier, ALowerLimitIsKeptFromTheStart) {
  DiskRig rig(4 << 20, 128 << 10);
  ASSERT_TRUE(rig.Open().ok());
  for (uint64_t chain = 0; chain < 150; ++chain) ASSERT_TRUE(rig.Put(kShape, chain, 0, 20).ok());
  ASSERT_GT(rig.Occupied(), uint64_t{2} << 20);
  rig.options.limit_bytes = 2 << 20;
  ASSERT_TRUE(rig.Open().ok());
  EXPECT_LE(rig.Occupied(), uint64_t{2} << 20);
  EXPECT_GT(rig.tier->stats().live_blocks, 0u);
}

TEST(DiskTier, LeavesFreeRoomOfTheDiskToOthers) {
  DiskRig rig(4 << 20, 128 << 10);
  rig.files->SetTotalBytes(3 << 20);
  rig.options.min_free_bytes = 2 << 20;
  ASSERT_TRUE(rig.Open().ok());
  for (uint64_t chain = 0; chain < 100; ++chain) {
    ASSERT_TRUE(rig.Put(kShape, chain, 0, 20).ok());
    EXPECT_GE(rig.files->Room(kTestFolder)->free_bytes, rig.options.min_free_bytes);
  }
  rig.options.min_free_bytes = 3 << 20;
  ASSERT_TRUE(rig.Open().ok());
  const Status status = rig.Put(kShape, 0, 0, 1);
  EXPECT_EQ(status.code(), Code::kOverloaded);
  EXPECT_NE(status.message().find("3 MiB of the disk are to stay free"), std::string::npos) << status.message();
}

TEST(DiskTier, ForeignFilesCountAndAreLeftAlone) {
  DiskRig rig(2 << 20, 128 << 10);
  ASSERT_TRUE(rig.Open().ok());
  ASSERT_TRUE(rig.Put(kShape, 1, 0, 1).ok());
  ASSERT_TRUE(rig.tier->Seal().ok());
  std::vector<std::byte> newer = rig.files->Contents(rig.Segments().at(0));
  newer[8] = std::byte{9};
  const std::vector<std::string> paths{"/disk/film.mkv", "/disk/00000000000000ff.seg", "/disk/0000000000000001.open"};
  rig.files->SetContents(paths[0], std::vector<std::byte>(1 << 20));
  rig.files->SetContents(paths[1], newer);
  rig.files->SetContents(paths[2], std::vector<std::byte>(5000, std::byte{'x'}));
  ASSERT_TRUE(rig.Open().ok());
  EXPECT_EQ(rig.tier->stats().foreign_files, 3u);
  EXPECT_EQ(rig.tier->stats().discarded_segments, 0u);
  for (uint64_t chain = 0; chain < 100; ++chain) {
    ASSERT_TRUE(rig.Put(kShape, chain, 0, 20).ok());
    EXPECT_LE(rig.Occupied(), rig.options.limit_bytes);
  }
  for (const std::string& path : paths) EXPECT_FALSE(rig.files->Contents(path).empty());
}

TEST(DiskTier, AFolderOfANewerVersionIsRefused) {
  DiskRig rig;
  ASSERT_TRUE(rig.Open().ok());
  const std::string path = fmt::format("{}/{}", kTestFolder, kDeletionFile);
  std::vector<std::byte> bytes = rig.files->Contents(path);
  for (const size_t page : {size_t{0}, size_t{kDiskPage}}) {
    bytes[page + 8] = std::byte{kDiskFormatVersion + 1};
    const uint32_t crc = Crc32c(std::span(bytes).subspan(page, kDiskPage - 4));
    for (size_t i = 0; i < 4; ++i) bytes[page + kDiskPage - 4 + i] = static_cast<std::byte>(crc >> (8 * i));
  }
  rig.files->SetContents(path, bytes);
  const Status status = rig.Open();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("it is of version 4; this program reads up to 3"), std::string::npos)
      << status.message();
}

TEST(DiskTier, RepeatedFailuresDegradeItUntilOneTrySucceeds) {
  DiskRig rig;
  ASSERT_TRUE(rig.Open().ok());
  ASSERT_TRUE(rig.Put(kShape, 1, 0, 1).ok());
  rig.files->Fail({.op = FileOp::kWrite, .onwards = true});
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(rig.Put(kShape, 2, 0, 1).ok());
  EXPECT_EQ(rig.tier->health().code(), Code::kUnavailable);
  const uint64_t writes = rig.files->counts().Of(FileOp::kWrite);
  EXPECT_EQ(rig.Put(kShape, 2, 0, 1).code(), Code::kUnavailable);
  EXPECT_EQ(rig.files->counts().Of(FileOp::kWrite), writes);
  EXPECT_EQ(rig.tier->stats().refused_puts, 1u);
  ExpectThere(rig, kShape, 1, 0);
  rig.clock.Advance(rig.options.retry_after);
  EXPECT_FALSE(rig.Put(kShape, 2, 0, 1).ok());
  EXPECT_EQ(rig.files->counts().Of(FileOp::kWrite), writes + 1);
  rig.files->Heal();
  EXPECT_FALSE(rig.Put(kShape, 2, 0, 1).ok());
  rig.clock.Advance(rig.options.retry_after);
  EXPECT_TRUE(rig.Put(kShape, 2, 0, 1).ok());
  EXPECT_TRUE(rig.tier->health().ok());
  ExpectThere(rig, kShape, 2, 0);
}

TEST(DiskTier, AfterAFailedSyncNothingUnsyncedIsFoundAnyMore) {
  DiskRig rig;
  ASSERT_TRUE(rig.Open().ok());
  ASSERT_TRUE(rig.Put(kShape, 1, 0, 1).ok());
  ASSERT_TRUE(rig.tier->Seal().ok());
  ASSERT_TRUE(rig.Put(kShape, 2, 0, 4).ok());
  rig.files->Fail({.op = FileOp::kSync});
  EXPECT_FALSE(rig.tier->Flush().ok());
  EXPECT_FALSE(rig.tier->Find(TestKey(kShape, 2, 0)));
  EXPECT_EQ(rig.tier->stats().abandoned_blocks, 4u);
  EXPECT_TRUE(rig.tier->Flush().ok());
  ASSERT_TRUE(rig.Put(kShape, 2, 0, 4).ok());
  EXPECT_TRUE(rig.tier->Flush().ok());
  ASSERT_TRUE(rig.Crash(Unsynced::kLost).ok());
  ExpectThere(rig, kShape, 1, 0);
  ExpectThere(rig, kShape, 2, 3);
}

TEST(DiskTier, CutAtEveryByteASegmentGivesWhatIsBeforeTheCutOrLess) {
  const ChainShape shape{.slot_bytes = 100};
  for (const bool sealed : {false, true}) {
    DiskRig rig(1 << 20, 32 << 10);
    ASSERT_TRUE(rig.Open().ok());
    ASSERT_TRUE(rig.Put(shape, 1, 0, 2).ok());
    ASSERT_TRUE(rig.Put(shape, 2, 0, 1).ok());
    ASSERT_TRUE((sealed ? rig.tier->Seal() : rig.tier->Flush()).ok());
    const std::string path = rig.Segments().at(0);
    const std::vector<std::byte> whole = rig.files->Contents(path);
    const uint64_t end = sealed ? whole.size() : 6 * kDiskPage;
    for (uint64_t cut = 0; cut <= end; cut += cut % kDiskPage < 250 ? 1 : 61) {
      DiskRig after(1 << 20, 32 << 10);
      after.files = rig.files->AfterCrash(Unsynced::kKept);
      after.files->Cut(path, cut);
      ASSERT_TRUE(after.Open().ok()) << cut;
      EXPECT_EQ(after.tier->Find(TestKey(shape, 1, 1)).has_value(), cut >= 3 * kDiskPage) << cut;
      EXPECT_EQ(after.tier->Find(TestKey(shape, 2, 0)).has_value(), cut >= 5 * kDiskPage) << cut;
      for (uint64_t block = 0; block < 2; ++block) {
        if (after.tier->Find(TestKey(shape, 1, block))) ExpectThere(after, shape, 1, block);
      }
    }
  }
}

TEST(DiskTier, ASecondProcessIsRefusedAndTheFolderNamed) {
  DiskRig rig;
  const auto real = DiskFileSystem();
  rig.options.folder = ::testing::TempDir() + "disk_tier_lock";
  std::filesystem::remove_all(rig.options.folder);
  rig.options.lock = true;
  Result<std::unique_ptr<DiskTier>> first = DiskTier::Open(*real, rig.clock, rig.options);
  ASSERT_TRUE(first.ok()) << first.status().message();
  const Status second = DiskTier::Open(*real, rig.clock, rig.options).status();
  EXPECT_EQ(second.code(), Code::kUnavailable);
  EXPECT_EQ(second.message(),
            fmt::format("disk tier in {0}: {0}/cachalot.lock is held by another process", rig.options.folder));
  first = Unavailable("closed");
  rig.tier = DiskTier::Open(*real, rig.clock, rig.options).value();
  ASSERT_TRUE(rig.Put(kShape, 1, 0, 30).ok());
  ExpectThere(rig, kShape, 1, 29);
  ASSERT_TRUE(rig.tier->Seal().ok());
  rig.tier.reset();
  rig.tier = DiskTier::Open(*real, rig.clock, rig.options).value();
  ExpectThere(rig, kShape, 1, 29);
  std::filesystem::remove_all(rig.options.folder);
}

}  // namespace
}  // namespace cachalot::tier
