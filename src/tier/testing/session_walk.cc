#include "tier/testing/session_walk.h"

#include <gtest/gtest.h>

#include <utility>

namespace cachalot::tier {
namespace {

FileOp AnOperation(SplitMix64& random) {
  constexpr FileOp kOps[] = {FileOp::kWrite,  FileOp::kSync,     FileOp::kOpen, FileOp::kRename,
                             FileOp::kRemove, FileOp::kTruncate, FileOp::kAny,  FileOp::kSyncFolder};
  return kOps[random.Below(std::size(kOps))];
}

}  // namespace

SessionWalk::SessionWalk(uint64_t seed) : random_(seed) {
  EXPECT_TRUE(disk_->MakeFolder("j").ok());
  EXPECT_TRUE(disk_->SyncFolder(".").ok());
  OpenJournal();
}

SessionJournalOptions SessionWalk::Options() {
  SessionJournalOptions options;
  for (uint8_t& byte : options.uuid) byte = static_cast<uint8_t>(random_());
  options.dead_bytes = 3000;
  return options;
}

void SessionWalk::OpenJournal() {
  Result<SessionJournal::Opened> opened = SessionJournal::Open(*disk_, "j", Options());
  if (!opened.ok()) {  // a failure that was set may hit reading
    disk_->Heal();
    opened = SessionJournal::Open(*disk_, "j", Options());
  }
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  ASSERT_EQ(opened->recovery.foreign_files, 0u);
  ASSERT_TRUE(model_.Recovered(opened->sessions));
  journal_ = std::move(opened->journal);
}

bool SessionWalk::ChangeAndTryToSync(int changes) {
  for (int i = 0; i < changes; ++i) model_.ChangeBoth(*journal_, random_);
  changes_ += static_cast<uint64_t>(changes);
  const bool ok = journal_->Sync().ok();
  if (ok) model_.Synced();
  return ok;
}

void SessionWalk::ChangeAndSync(int changes) {
  if (ChangeAndTryToSync(changes)) return;
  const Status again = journal_->Sync();
  ASSERT_TRUE(again.ok()) << again.message();
  model_.Synced();
}

void SessionWalk::Live(uint64_t most_changes) {
  const uint64_t end = changes_ + 1 + random_.Below(most_changes);
  while (changes_ < end) {
    if (random_.Below(6) == 0) {
      const bool lasting = random_.Below(2) == 0;
      disk_->Fail({AnOperation(random_), 1 + random_.Below(6), lasting, Code::kUnavailable});
    }
    (void)ChangeAndTryToSync(static_cast<int>(random_.Below(6)));
    if (random_.Below(4) == 0) disk_->Heal();
  }
}

void SessionWalk::Reopen(Unsynced unsynced, uint64_t seed) {
  auto after = disk_->AfterCrash(unsynced, seed);
  snapshots_ += journal_->stats().snapshots;
  journal_.reset();
  disk_ = std::move(after);
  OpenJournal();
}

void SessionWalk::CrashAndOpen() {
  const auto unsynced = static_cast<Unsynced>(random_.Below(3));
  const uint64_t seed = random_();
  auto after = disk_->AfterCrash(unsynced, seed);
  snapshots_ += journal_->stats().snapshots;
  journal_.reset();
  disk_ = std::move(after);
  if (random_.Below(3) == 0)
    disk_->Fail({FileOp::kAny, 1 + random_.Below(20), random_.Below(2) == 0, Code::kOverloaded});
  OpenJournal();
}

void SessionWalk::CheckEveryCrash(uint64_t seeds) {
  for (const Unsynced unsynced : {Unsynced::kLost, Unsynced::kKept, Unsynced::kMixed}) {
    for (uint64_t seed = 0; seed < (unsynced == Unsynced::kMixed ? seeds : 1); ++seed) {
      const auto after = disk_->AfterCrash(unsynced, seed);
      const auto opened = SessionJournal::Open(*after, "j", Options());
      ASSERT_TRUE(opened.ok()) << opened.status().message();
      SessionModel model = model_;
      ASSERT_TRUE(model.Recovered(opened.value().sessions));
    }
  }
}

}  // namespace cachalot::tier
