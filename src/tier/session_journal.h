// SessionJournal keeps a durable copy of the table of sessions in a folder: changes are appended, Sync() makes them
// last.
// Threads:   one at a time.
// Ownership: does not own the FileSystem; the folder is its own, made, synced and locked by the caller, who also keeps
//            the live table.
// Invariant: after a crash at any point the sessions are those of some moment between the last Sync() that succeeded
//            and the crash; a deletion that it made durable holds, also against damage of one of its two copies.
// Cost:      changes are encoded into a buffer; Sync() is one write and one file sync, two with deletions among them.
//            Now and then it writes all sessions anew, so that the files hold at most about as much dead as live.
//
// After a failure the changes stay in the buffer and the next Sync() tries again, in a new file. docs/session_format.md
// has the format.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/ids.h"
#include "base/status.h"
#include "tier/session_file_writer.h"
#include "tier/session_record.h"
#include "tier/session_replay.h"
#include "tier/stored_session.h"

namespace cachalot::tier {

struct SessionJournalOptions {
  JournalUuid uuid{};                                 // random, new for every Open
  uint64_t dead_bytes = uint64_t{1} << 20;            // that are always tolerated
  uint64_t pending_bytes_limit = uint64_t{64} << 20;  // of the buffer
  uint64_t limit_bytes = kAnyBytes;                   // that the files ever have

  static constexpr uint64_t kAnyBytes = uint64_t{1} << 60;
};

// So many times what sessions take, as records, is what their journal keeps to whatever happens: two such parts hold
// what is live and as much that is dead, one what is dead anyhow, one what is appended before a snapshot, one that
// snapshot, and one what a crash left of another.
inline constexpr uint64_t kJournalParts = 6;
constexpr uint64_t LiveBytesWithin(uint64_t limit_bytes) { return limit_bytes / kJournalParts; }
// Options under which that holds.
SessionJournalOptions JournalWithin(uint64_t limit_bytes, const JournalUuid& uuid);

struct SessionJournalStats {
  uint64_t sessions = 0;
  uint64_t live_bytes = 0;  // what a snapshot would take
  uint64_t file_bytes = 0;
  uint64_t pending_bytes = 0;  // not yet durable
  uint64_t snapshots = 0;
  uint64_t failures = 0;         // of writing, since Open
  uint64_t failures_in_row = 0;  // 0: the last Sync() succeeded
  uint64_t lost_records = 0;     // found missing when sessions were written anew; what Open found comes from Open
};

class SessionJournal {
 public:
  struct Opened {
    std::unique_ptr<SessionJournal> journal;
    std::vector<StoredSession> sessions;  // by key
    SessionRecovery recovery;
  };

  // Reads what is there and writes it anew. When only the writing fails the journal is open, and stats() and Sync()
  // tell. Errors are those of ReplaySessions, and kInvalid when what is there is too much for the limit.
  static Result<Opened> Open(FileSystem& files, const std::string& folder, const SessionJournalOptions& options);

  SessionJournal(const SessionJournal&) = delete;
  SessionJournal& operator=(const SessionJournal&) = delete;

  // Each changes nothing when it fails: kInvalid when a name or history is too long or the session is not there,
  // kUnavailable when the buffer is full.
  Status Put(const StoredSession& session);
  // Its tokens from `from_position` on become `tokens`. kInvalid also when it has fewer than from_position.
  Status Extend(const SessionKey& key, uint64_t from_position, std::span<const TokenId> tokens, uint64_t last_used);
  Status Touch(const SessionKey& key, uint64_t last_used);
  Status SetHeld(const SessionKey& key, bool pinned, bool suspended);
  // No error when it is not there.
  Status Delete(const SessionKey& key);
  Status ClearOwner(const std::string& owner);
  Status ClearAll();

  // All changes so far are on disk. kUnavailable when the disk fails or is full, or the limit is reached.
  Status Sync();

  SessionJournalStats stats() const;
  // Of the session as it was last put or extended; 0: it is not there.
  uint64_t TokensOf(const SessionKey& key) const;

 private:
  struct Entry {
    uint64_t content_sequence = 0;
    uint64_t tokens = 0;
    uint64_t bytes = 0;  // of a record with all of it
  };
  // Records that are to be appended together.
  struct Batch {
    std::vector<std::byte> bytes;
    uint64_t first_sequence = 0;
  };

  SessionJournal(FileSystem& files, const std::string& folder, const SessionJournalOptions& options);

  static SessionChange ChangeTo(const SessionKey& key, const Entry& entry, SessionChangeKind kind);
  Status Record(SessionChange change);
  Entry* Find(const SessionKey& key);
  void SetBytes(Entry& entry, uint64_t bytes);
  void Erase(std::map<SessionKey, Entry>::iterator entry);
  void FillEntries(const ReplayedSessions& sessions);

  Status Write(SessionFileWriter& writer, SessionFileKind kind, Batch& batch);
  Status WriteAll();
  Status MakeRoom();
  bool WantsSnapshot() const;
  Status Snapshot();
  Status Snapshot(const SessionReplay& replay);
  Status Counted(Status status);

  FileSystem& files_;
  const std::string folder_;
  const SessionJournalOptions options_;
  const uint32_t seed_;
  std::map<SessionKey, Entry> entries_;
  SessionFileWriter log_;
  SessionFileWriter deletions_;
  Batch pending_;
  Batch pending_deletions_;
  uint64_t next_sequence_ = 1;
  uint64_t next_number_ = 1;
  bool must_snapshot_ = false;        // the files that Open found may not be on disk as they were read
  uint64_t next_snapshot_bytes_ = 0;  // after a snapshot failed: not before the files are so long
  SessionJournalStats stats_;
};

}  // namespace cachalot::tier
