// The journal against a plain map, for longer: 200 crashes for each way in which the disk may be left.
#include <gtest/gtest.h>

#include "base/random.h"
#include "base/testing/fault_file_system.h"
#include "tier/testing/session_walk.h"

namespace cachalot::tier {
namespace {

TEST(SessionJournalSlow, TwoHundredCrashesOfEachKindAtRandomOperations) {
  for (const Unsynced unsynced : {Unsynced::kLost, Unsynced::kKept, Unsynced::kMixed}) {
    SplitMix64 random(static_cast<uint64_t>(unsynced));
    SessionWalk walk(random());
    for (int crash = 0; crash < 200; ++crash) {
      SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(unsynced) << " crash " << crash);
      walk.disk().Fail({FileOp::kAny, 1 + random.Below(200), true, Code::kUnavailable});
      while (walk.ChangeAndTryToSync(static_cast<int>(random.Below(8)))) {
      }
      walk.CheckEveryCrash(/*seeds=*/40);
      walk.Reopen(unsynced, random());
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_GT(walk.snapshots(), 200u);
  }
}

TEST(SessionJournalSlow, AThousandLivesOfChangesAndFailures) {
  for (uint64_t seed = 1000; seed < 2000; ++seed) {
    SessionWalk walk(seed);
    for (int life = 0; life < 10; ++life) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " life " << life);
      walk.Live(/*most_changes=*/100);
      walk.CrashAndOpen();
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace cachalot::tier
