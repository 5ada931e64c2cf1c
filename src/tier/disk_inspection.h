// InspectFolder tells what a folder of the disk tier holds, without changing or locking it.
// Threads:   any; a tier may be using the folder meanwhile, then what it is just writing may be missing.
// Ownership: none.
// Invariant: live is what DiskTier::Open would find.
// Cost:      that of DiskTier::Open; with `check_payloads` every byte is read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/hash.h"
#include "base/status.h"
#include "tier/disk_recovery.h"

namespace cachalot::tier {

struct SegmentReport {
  std::string name;
  SegmentState state = SegmentState::kUnreadable;
  std::string problem;  // empty: none
  uint64_t file_bytes = 0;
  int64_t created_unix_seconds = 0;
  int64_t last_written_unix_seconds = 0;
  uint64_t records = 0;
  uint64_t blocks = 0;
  uint64_t live_blocks = 0;
  uint64_t live_bytes = 0;
  uint64_t damaged_records = 0;  // that the scan of an unsealed one skipped
  uint64_t damaged_blocks = 0;   // when payloads are checked
};

// What is live of one identity.
struct IdentityReport {
  Digest identity{};
  uint64_t blocks = 0;
  uint64_t tokens = 0;
  uint64_t bytes = 0;
};

struct FolderReport {
  std::vector<SegmentReport> segments;     // oldest first
  std::vector<IdentityReport> identities;  // most bytes first
  std::vector<std::string> foreign_files;
  uint64_t openings = 0;
  uint64_t deletions = 0;
  std::string deletions_problem;  // empty: none; else nothing is live
  bool payloads_checked = false;
};

// As of `unix_seconds`. kUnavailable when the folder cannot be listed.
Result<FolderReport> InspectFolder(FileSystem& files, const std::string& folder, bool check_payloads,
                                   int64_t unix_seconds);

}  // namespace cachalot::tier
