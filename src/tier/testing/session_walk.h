// SessionWalk drives a session journal over a FaultFileSystem, beside the model, through changes, failures and crashes.
// Threads:   one.
// Ownership: owns disk, journal and model.
// Invariant: fails the test when the journal opens with sessions of no moment that is allowed.
// Cost:      that of the journal and model.
#pragma once

#include <cstdint>
#include <memory>

#include "base/random.h"
#include "base/testing/fault_file_system.h"
#include "tier/session_journal.h"
#include "tier/testing/session_model.h"

namespace cachalot::tier {

class SessionWalk {
 public:
  explicit SessionWalk(uint64_t seed);

  FaultFileSystem& disk() { return *disk_; }
  uint64_t changes() const { return changes_; }
  uint64_t snapshots() const { return snapshots_; }

  // Changes and syncs, with or without failures, some of them lasting: then the crash is to come.
  void Live(uint64_t most_changes);
  // Then a sync that succeeds at the first or second trial.
  void ChangeAndSync(int changes);
  // False when the sync failed.
  bool ChangeAndTryToSync(int changes);
  void CrashAndOpen();
  void Reopen(Unsynced unsynced, uint64_t seed = 0);
  // Each crash that is possible now, by seed, leaves what it may.
  void CheckEveryCrash(uint64_t seeds);

 private:
  SessionJournalOptions Options();
  void OpenJournal();

  SplitMix64 random_;
  std::unique_ptr<FaultFileSystem> disk_ = std::make_unique<FaultFileSystem>();
  std::unique_ptr<SessionJournal> journal_;
  SessionModel model_;
  uint64_t changes_ = 0;
  uint64_t snapshots_ = 0;  // of journals that ended
};

}  // namespace cachalot::tier
