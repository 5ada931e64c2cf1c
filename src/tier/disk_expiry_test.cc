// KV that is kept on disk for a time only: how long it is found, over restarts, crashes and clocks that jump.
#include <gtest/gtest.h>

#include "base/random.h"
#include "tier/disk_inspection.h"
#include "tier/testing/disk_rig.h"

namespace cachalot::tier {
namespace {

constexpr Nanos kHour = std::chrono::hours(1);
constexpr int64_t kHourSeconds = 3600;

class DiskExpiry : public testing::Test {
 protected:
  DiskExpiry() { EXPECT_TRUE(rig_.Open().ok()); }

  void PutFor(Nanos life, uint64_t chain, uint64_t first = 0, uint64_t count = 4) {
    KvRun run = TestRun(shape_, chain, first, count);
    if (life != Nanos::max()) run.deadline = rig_.clock.Now() + life;
    ASSERT_TRUE(rig_.tier->Put(run, TestBytes(run, shape_)).ok());
    ASSERT_TRUE(rig_.tier->Flush().ok());
  }
  bool Found(uint64_t chain, uint64_t block = 0) {
    const bool found = rig_.tier->Find(TestKey(shape_, chain, block)).has_value();
    const bool read = rig_.Read(shape_, chain, block).outcome == ReadOutcome::kRead;
    EXPECT_EQ(found, read);
    return found;
  }
  void Restart(Unsynced unsynced = Unsynced::kLost) { ASSERT_TRUE(rig_.Crash(unsynced, 1).ok()); }

  const ChainShape shape_;
  DiskRig rig_;
};

TEST_F(DiskExpiry, WhatHasHadItsTimeIsNotFound) {
  PutFor(kHour, 1);
  PutFor(Nanos::max(), 2);
  rig_.clock.Advance(kHour - std::chrono::seconds(1));
  EXPECT_TRUE(Found(1));
  rig_.clock.Advance(std::chrono::seconds(1));
  EXPECT_FALSE(Found(1));
  EXPECT_TRUE(Found(2));
  EXPECT_EQ(rig_.tier->DeadlineOf(TestKey(shape_, 2, 0)), Nanos::max());
}

TEST_F(DiskExpiry, WhatIsPastItsTimeIsNotEvenWritten) {
  PutFor(Nanos(0), 1);
  EXPECT_EQ(rig_.tier->stats().put_records, 0u);
}

TEST_F(DiskExpiry, ARestartLeavesItWhatIsLeft) {
  PutFor(2 * kHour, 1);
  rig_.clock.Advance(kHour);
  Restart();
  EXPECT_TRUE(Found(1));
  EXPECT_EQ(rig_.tier->DeadlineOf(TestKey(shape_, 1, 0)), rig_.clock.Now() + kHour);
  rig_.clock.Advance(kHour);
  EXPECT_FALSE(Found(1));
}

TEST_F(DiskExpiry, TimePassesWhileNobodyHasTheFolderOpen) {
  PutFor(kHour, 1);
  PutFor(3 * kHour, 2);
  rig_.LosePower(Unsynced::kLost);
  rig_.clock.Advance(2 * kHour);
  const FolderReport report = InspectFolder(*rig_.files, kTestFolder, false, rig_.clock.UnixSeconds()).value();
  ASSERT_EQ(report.identities.size(), 1u);
  EXPECT_EQ(report.identities[0].blocks, 4u);
  ASSERT_TRUE(rig_.Open().ok());
  EXPECT_FALSE(Found(1));
  EXPECT_TRUE(Found(2));
}

TEST_F(DiskExpiry, WhileItIsOpenNoJumpOfTheWallClockIsSeen) {
  PutFor(2 * kHour, 1);
  rig_.clock.JumpWallClock(100 * kHourSeconds);
  EXPECT_TRUE(Found(1));
  rig_.clock.JumpWallClock(-200 * kHourSeconds);
  rig_.clock.Advance(kHour);
  EXPECT_TRUE(Found(1));
  rig_.clock.Advance(kHour);
  EXPECT_FALSE(Found(1));
}

TEST_F(DiskExpiry, AClockThatWasSetBackEndsAllThatEnds) {
  PutFor(2 * kHour, 1);
  PutFor(Nanos::max(), 2);
  rig_.clock.JumpWallClock(-kHourSeconds);
  Restart();
  EXPECT_FALSE(Found(1));
  EXPECT_TRUE(Found(2));
  rig_.clock.JumpWallClock(kHourSeconds);
  Restart();
  EXPECT_FALSE(Found(1));  // for good
}

TEST_F(DiskExpiry, AClockThatWasCorrectedALittleDoesNot) {
  PutFor(2 * kHour, 1);
  rig_.clock.JumpWallClock(-30);
  Restart();
  EXPECT_TRUE(Found(1));
  rig_.clock.Advance(2 * kHour);
  EXPECT_FALSE(Found(1));
}

TEST_F(DiskExpiry, AClockThatWasSetForwardEndsItEarlyAndForGood) {
  PutFor(2 * kHour, 1);
  rig_.clock.JumpWallClock(3 * kHourSeconds);
  Restart();
  EXPECT_FALSE(Found(1));
  rig_.clock.JumpWallClock(-3 * kHourSeconds);
  Restart();
  EXPECT_FALSE(Found(1));
}

TEST_F(DiskExpiry, OnceErasedNoClockBringsItBackWhateverACrashLeaves) {
  for (const Unsynced unsynced : {Unsynced::kLost, Unsynced::kKept, Unsynced::kMixed}) {
    PutFor(kHour, 1);
    PutFor(Nanos::max(), 2);
    ASSERT_TRUE(rig_.tier->NextExpiry().has_value());
    rig_.clock.Advance(kHour);
    EXPECT_LE(*rig_.tier->NextExpiry(), rig_.clock.Now());
    ASSERT_TRUE(rig_.tier->EraseExpired().ok());
    EXPECT_EQ(rig_.tier->NextExpiry(), std::nullopt);
    rig_.clock.JumpWallClock(-kHourSeconds + 30);  // as late as when it was written
    Restart(unsynced);
    EXPECT_FALSE(Found(1));
    EXPECT_TRUE(Found(2));
    rig_.clock.JumpWallClock(kHourSeconds);
  }
}

TEST_F(DiskExpiry, WrittenAnewItLivesAsLongAsThenWished) {
  PutFor(kHour, 1);
  PutFor(3 * kHour, 1);
  rig_.clock.Advance(2 * kHour);
  ASSERT_TRUE(rig_.tier->EraseExpired().ok());  // the older record's time is over
  EXPECT_TRUE(Found(1));
  Restart();
  EXPECT_TRUE(Found(1));
  rig_.clock.Advance(kHour);
  EXPECT_FALSE(Found(1));
}

TEST_F(DiskExpiry, ASegmentOfWhichAllHasHadItsTimeGivesItsRoomBack) {
  PutFor(kHour, 1);
  ASSERT_TRUE(rig_.tier->Seal().ok());
  PutFor(Nanos::max(), 2);
  EXPECT_EQ(rig_.tier->stats().segments, 2u);
  rig_.clock.Advance(kHour);
  ASSERT_TRUE(rig_.tier->EraseExpired().ok());
  EXPECT_EQ(rig_.tier->stats().segments, 1u);
  EXPECT_TRUE(Found(2));
}

TEST_F(DiskExpiry, WhatIsKeptWhenItsSegmentGoesEndsAsBefore) {
  uint64_t chain = 1;
  PutFor(kHour, chain);
  for (uint64_t filler = 100; rig_.tier->stats().kept_blocks == 0 && filler < 2000; ++filler) {
    ASSERT_TRUE(Found(chain)) << "reclaimed before it was kept";  // and thereby read
    PutFor(Nanos::max(), filler, 0, 8);
  }
  ASSERT_GT(rig_.tier->stats().kept_blocks, 0u);
  Restart();
  EXPECT_TRUE(Found(chain));
  rig_.clock.Advance(kHour);
  EXPECT_FALSE(Found(chain));
}

// Random lives, restarts and crashes: found before its end, as far as it was flushed, and never after it.
TEST_F(DiskExpiry, AtRandomNothingOutlivesItsTime) {
  SplitMix64 random(3);
  std::map<uint64_t, Nanos> ends;  // by chain
  uint64_t found = 0;
  for (int i = 0; i < 400; ++i) {
    const uint64_t chain = random.Below(40);
    switch (random.Below(6)) {
      case 0:
      case 1: {
        const auto life = std::chrono::minutes(1 + random.Below(300));
        PutFor(life, chain, 0, 2);
        ends[chain] = rig_.clock.Now() + life;
        break;
      }
      case 2: rig_.clock.Advance(std::chrono::minutes(random.Below(60))); break;
      case 3: ASSERT_TRUE(rig_.tier->EraseExpired().ok()); break;
      case 4: Restart(static_cast<Unsynced>(random.Below(3))); break;
      default: break;
    }
    for (const auto& [ending, end] : ends) {
      const Nanos left = end - rig_.clock.Now();
      const bool there = Found(ending);
      found += there;
      if (left <= Nanos(0)) {
        EXPECT_FALSE(there) << i;
      } else if (left > std::chrono::seconds(2)) {  // each restart counts whole seconds
        EXPECT_TRUE(there) << i;
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(found, 1000u);
}

}  // namespace
}  // namespace cachalot::tier
