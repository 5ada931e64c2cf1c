// SessionStore makes sessions last in a journal.
// Threads:   belongs to the engine thread; the journal is written on the transfer engine's.
// Ownership: owns the journal, its folder's lock and the transfers; the table of sessions is the caller's.
// Invariant: that of DurableSessions. What was not written is tried again until it is.
// Cost:      no call waits for the disk but Open and the destructor, which waits for what is under way. Memory for the
//            names of what changed, and for one batch of changes.
//
// What is noted of a session is that it changed, not how: when a batch begins, what is then in the table is written.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/entropy.h"
#include "base/file_lock.h"
#include "base/file_system.h"
#include "base/ids.h"
#include "base/status.h"
#include "tier/durable_sessions.h"
#include "tier/end_listener.h"
#include "tier/session_journal.h"
#include "tier/stored_session.h"
#include "tier/transfer_engine.h"
#include "tier/write_health.h"

namespace cachalot::tier {

struct SessionStoreOptions {
  std::string folder;  // made if needed
  bool lock = true;    // against other processes; the folder must be on the real disk
  uint64_t limit_bytes = SessionJournalOptions::kAnyBytes;  // of its files; sessions take LiveBytesWithin of it at most
  std::function<uint64_t()> entropy = SystemEntropy;
};

struct SessionStoreStats {
  SessionJournalStats journal;  // after the last batch
  uint64_t unwritten = 0;       // sessions that changed since they were written
  Status health;                // OK, or why nothing is written for the time being
};

class SessionStore final : public DurableSessions {
 public:
  // With a thread of its own. Errors are those of SessionJournal::Open; kUnavailable when another process has the
  // folder.
  static Result<std::unique_ptr<SessionStore>> Open(FileSystem& files, Clock& clock,
                                                    const SessionStoreOptions& options);
  // `make_transfers` is given what the transfer engine is to call when there is something to Poll.
  using MakeTransfers = std::function<Result<std::unique_ptr<TransferEngine>>(std::function<void()>)>;
  static Result<std::unique_ptr<SessionStore>> Open(FileSystem& files, Clock& clock, const SessionStoreOptions& options,
                                                    const MakeTransfers& make_transfers);
  ~SessionStore() override;

  std::vector<StoredSession> TakeFound() override { return std::exchange(found_, {}); }
  void NotePut(const SessionKey& key) override;
  void NoteExtended(const SessionKey& key, uint64_t from_position) override;
  void NoteUsed(const SessionKey& key) override { dirty_[key].used = true; }
  void NoteHeld(const SessionKey& key) override { dirty_[key].held = true; }
  void NoteDeleted(const SessionKey& key) override;
  SyncId Sync() override;
  std::vector<Ended> Poll(const Lookup& find) override;
  void OnEnd(std::function<void()> call) override;
  std::optional<Nanos> WakeAt() const override;
  bool idle() const override { return !under_way_ && !busy(); }
  Status health() const override { return stats().health; }

  const SessionRecovery& recovery() const { return recovery_; }
  // As of the last Poll.
  SessionStoreStats stats() const;

 private:
  class Batch;
  // What is to be written of a session.
  struct Dirty {
    bool whole = false;
    bool held = false;
    bool used = false;
    std::optional<uint64_t> from_position;  // of tokens that are others
  };

  SessionStore(SessionJournal::Opened journal, std::optional<FileLock> lock, Clock& clock);

  bool busy() const { return !dirty_.empty() || !syncs_.empty() || unsynced_; }
  // When the next batch may begin: somebody who waits is told at once whether it can be written.
  Nanos begins_at() const { return syncs_.empty() ? retry_at_ : Nanos(0); }
  void Begin(const Lookup& find);
  std::vector<SessionChange> TakeChanges(const Lookup& find);
  static void AddChanges(const StoredSession& session, const Dirty& dirty, std::vector<SessionChange>* changes);
  void End(TransferCompletion& completion, std::vector<Ended>* ended);

  const std::optional<FileLock> lock_;
  const std::unique_ptr<SessionJournal> journal_;
  const SessionRecovery recovery_;
  std::vector<StoredSession> found_;
  Clock& clock_;
  EndListener listener_;
  std::unique_ptr<TransferEngine> transfers_;  // ends before what its jobs use
  std::map<SessionKey, Dirty> dirty_;
  std::set<SessionKey> written_;        // that the journal was given
  std::vector<SyncId> syncs_;           // that wait for the next batch
  std::vector<SyncId> syncs_in_batch_;  // that wait for the one under way
  std::optional<TransferId> under_way_;
  bool unsynced_ = false;  // a batch failed: what it gave the journal may not be on disk
  Nanos retry_at_{0};
  uint64_t last_sync_ = 0;
  WriteHealth health_;
  SessionJournalStats journal_stats_;
};

}  // namespace cachalot::tier
