#include "tier/deletion_log.h"

#include <gtest/gtest.h>

#include "tier/testing/disk_rig.h"

namespace cachalot::tier {
namespace {

constexpr const char* kPath = "/disk/cachalot.deletions";
constexpr uint64_t kTwinBytes = 2 * kDiskPage;

std::vector<Digest> Keys(uint64_t first, uint64_t count) {
  std::vector<Digest> keys;
  for (uint64_t i = first; i < first + count; ++i) keys.push_back(TestKey({}, 1, i));
  return keys;
}

struct LogRig {
  FaultFileSystem files;
  std::unique_ptr<DeletionLog> log;

  LogRig() {
    EXPECT_TRUE(files.MakeFolder("/disk").ok());
    EXPECT_TRUE(files.SyncFolder("/").ok());
    log = std::make_unique<DeletionLog>(files, "/disk", 64 * kTwinBytes, LoadedDeletions{7, {}});
    EXPECT_TRUE(log->Store().ok());
  }
  void Erase(uint64_t first, uint64_t count, uint64_t sequence) {
    log->Add(Keys(first, count), sequence);
    EXPECT_TRUE(log->Store().ok());
  }
};

TEST(DeletionLog, WhatIsStoredSurvivesEveryCrash) {
  LogRig rig;
  rig.Erase(0, 3, 10);
  rig.Erase(3, 250, 20);
  rig.Erase(0, 1, 30);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto after = rig.files.AfterCrash(seed == 0 ? Unsynced::kLost : Unsynced::kMixed, seed);
    const Result<LoadedDeletions> loaded = LoadDeletions(*after, "/disk");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ(loaded->opening, 7u);
    EXPECT_EQ(loaded->deleted.size(), 253u);
    EXPECT_EQ(loaded->deleted.at(TestKey({}, 1, 0)), 30u);
    EXPECT_EQ(loaded->deleted.at(TestKey({}, 1, 2)), 10u);
    EXPECT_EQ(loaded->deleted.at(TestKey({}, 1, 252)), 20u);
  }
}

TEST(DeletionLog, OneFlippedBitAnywhereCostsNothing) {
  LogRig rig;
  rig.Erase(0, 30, 10);
  rig.Erase(30, 30, 20);
  const std::vector<std::byte> good = rig.files.Contents(kPath);
  SplitMix64 random(1);
  for (int i = 0; i < 500; ++i) {
    rig.files.SetContents(kPath, good);
    rig.files.FlipBit(kPath, random.Below(good.size() * 8));
    const Result<LoadedDeletions> loaded = LoadDeletions(rig.files, "/disk");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_EQ(loaded->deleted.size(), 60u);
  }
}

TEST(DeletionLog, ALossInTheMiddleIsNoticedATornEndIsNot) {
  LogRig rig;
  rig.Erase(0, 3, 10);
  rig.Erase(3, 3, 20);
  std::vector<std::byte> contents = rig.files.Contents(kPath);
  ASSERT_EQ(contents.size(), 3 * kTwinBytes);
  for (uint64_t cut = 2 * kTwinBytes; cut < 2 * kTwinBytes + kDiskPage; cut += 500) {
    rig.files.SetContents(kPath, std::span(contents).first(cut));
    EXPECT_EQ(LoadDeletions(rig.files, "/disk")->deleted.size(), 3u) << cut;
  }
  contents[kTwinBytes + 100] ^= std::byte{1};
  contents[kTwinBytes + kDiskPage + 100] ^= std::byte{1};
  rig.files.SetContents(kPath, contents);
  const Status status = LoadDeletions(rig.files, "/disk").status();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_EQ(status.message(), "/disk/cachalot.deletions: a page before page 2 is damaged");
  rig.files.SetContents(kPath, {});
  EXPECT_EQ(LoadDeletions(rig.files, "/disk").status().code(), Code::kCorrupt);
}

TEST(DeletionLog, WhateverFailsIsStoredTheNextTime) {
  for (uint64_t nth = 1; nth < 12; ++nth) {
    LogRig rig;
    rig.files.Fail({.op = FileOp::kAny, .nth = nth});
    std::vector<Digest> stored;
    for (uint64_t i = 0; i < 8; ++i) {
      rig.log->Add(Keys(i, 1), 10 + i);
      if (rig.log->Store().ok()) stored = Keys(0, i + 1);
      const auto after = rig.files.AfterCrash(Unsynced::kMixed, nth * 100 + i);
      const Result<LoadedDeletions> loaded = LoadDeletions(*after, "/disk");
      ASSERT_TRUE(loaded.ok()) << loaded.status().message();
      for (const Digest& key : stored) EXPECT_TRUE(loaded->deleted.contains(key)) << nth << " " << i;
    }
    EXPECT_EQ(stored.size(), 8u);
  }
}

TEST(DeletionLog, IsWrittenAnewWhenMostOfItIsForgotten) {
  LogRig rig;
  for (uint64_t i = 0; i < 1000; ++i) {
    rig.Erase(i, 1, 10 + i);
    rig.log->KeepOnly({TestKey({}, 1, i)});
    EXPECT_LE(rig.files.Contents(kPath).size(), 64 * kTwinBytes);
  }
  EXPECT_LE(rig.files.Contents(kPath).size(), 20 * kTwinBytes);
  EXPECT_EQ(rig.log->size(), 1u);
  rig.log->Add(Keys(0, 7000), 2000);
  EXPECT_FALSE(rig.log->Fits());
}

}  // namespace
}  // namespace cachalot::tier
