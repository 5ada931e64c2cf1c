// ReplaySessions reads a folder's session journal: the sessions as of the last change that is there, and what is
// missing.
// Threads:   pure but for the reading.
// Ownership: the result owns its sessions.
// Invariant: no session comes back whose deletion stands in either of its two copies; a change is applied only to the
//            very contents that it was made to.
// Cost:      reads every byte of the newest snapshot and what follows it; memory for the sessions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "tier/stored_session.h"

namespace cachalot::tier {

// What reading met. `lost_records` are sequence numbers that are missing between others; of the end of the newest file
// nobody can tell whether it was torn while written or damaged later.
struct SessionRecovery {
  uint64_t files = 0;
  uint64_t records = 0;
  uint64_t lost_records = 0;
  uint64_t bad_bytes = 0;
  uint64_t unconnected_records = 0;  // what they were made to was lost
  uint64_t headless_files = 0;       // torn when they began, or damaged
  uint64_t foreign_files = 0;        // whose header belongs to another name; left alone
};

struct ReplayedSession {
  StoredSession session;
  uint64_t content_sequence = 0;  // of the change that wrote its tokens last
};

using ReplayedSessions = std::map<SessionKey, ReplayedSession>;

struct SessionReplay {
  ReplayedSessions sessions;
  SessionRecovery recovery;
  uint64_t next_sequence = 1;
  uint64_t next_number = 1;
  uint64_t file_bytes = 0;         // of the files that count
  std::vector<std::string> names;  // of the journal's files in the folder, those that no longer count included
};

enum class SessionFileName : uint8_t { kLog, kDeletions, kTemporary };

// The name of file `number` within the folder.
std::string NameOfSessionFile(SessionFileName kind, uint64_t number);

// kUnavailable when a file cannot be read: what it holds, deletions perhaps, is unknown. kInvalid when a file was
// written by another version.
Result<SessionReplay> ReplaySessions(FileSystem& files, const std::string& folder);

}  // namespace cachalot::tier
