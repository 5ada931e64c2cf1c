// The journal against a plain map: random changes, crashes and failures.
#include <gtest/gtest.h>

#include "base/random.h"
#include "base/testing/fault_file_system.h"
#include "tier/testing/session_model.h"
#include "tier/testing/session_walk.h"

namespace cachalot::tier {
namespace {

TEST(SessionJournalCrashes, SessionsAreThoseOfAMomentSinceTheLastSync) {
  uint64_t changes = 0;
  uint64_t snapshots = 0;
  for (uint64_t seed = 0; seed < 60 && !testing::Test::HasFatalFailure(); ++seed) {
    SessionWalk walk(seed);
    for (int life = 0; life < 8; ++life) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " life " << life);
      walk.Live(/*most_changes=*/60);
      walk.CrashAndOpen();
      if (testing::Test::HasFailure()) return;
    }
    changes += walk.changes();
    snapshots += walk.snapshots();
  }
  EXPECT_GE(changes, 10'000u);
  EXPECT_GE(snapshots, 500u);
}

// One failure, at each operation in turn; the owner tries again.
TEST(SessionJournalCrashes, AnyOneFailureLosesNothingThatIsSyncedAfterwards) {
  for (const Code code : {Code::kUnavailable, Code::kOverloaded}) {
    for (uint64_t nth = 1;; ++nth) {
      SCOPED_TRACE(testing::Message() << "operation " << nth);
      SessionWalk walk(7);
      walk.disk().Fail({.op = FileOp::kAny, .nth = nth, .onwards = false, .code = code});
      const uint64_t before = walk.disk().counts().Of(FileOp::kAny);
      for (int i = 0; i < 30; ++i) walk.ChangeAndSync(3);
      const bool reached = walk.disk().counts().Of(FileOp::kAny) - before >= nth;
      walk.Reopen(Unsynced::kLost);
      if (testing::Test::HasFailure()) return;
      if (!reached) break;
      ASSERT_LT(nth, 5000u);
    }
  }
}

// The power fails at each operation in turn.
TEST(SessionJournalCrashes, PowerMayFailAtAnyOperation) {
  for (uint64_t nth = 1;; ++nth) {
    SCOPED_TRACE(testing::Message() << "operation " << nth);
    SessionWalk walk(11);
    walk.disk().Fail({.op = FileOp::kAny, .nth = nth, .onwards = true, .code = Code::kUnavailable});
    bool reached = false;
    for (int i = 0; i < 30 && !reached; ++i) reached = !walk.ChangeAndTryToSync(3);
    walk.CheckEveryCrash(/*seeds=*/6);
    if (testing::Test::HasFailure()) return;
    if (!reached) break;
    ASSERT_LT(nth, 5000u);
  }
}

}  // namespace
}  // namespace cachalot::tier
