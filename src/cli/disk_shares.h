// DiskShares divides --disk-size between what lies in --disk-path: KV, and the sessions where they lie there too.
// Threads:   pure, but for a look at where paths lead.
// Ownership: none.
// Invariant: the shares add up to --disk-size.
// Cost:      none.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "cli/tier_options.h"

namespace cachalot::cli {

// Where sessions are kept: --session-path, or a folder in --disk-path; empty: nowhere.
std::string SessionFolder(const TierOptions& options);

struct DiskShares {
  uint64_t kv_bytes = 0;
  uint64_t session_bytes = 0;   // of files; 0: they lie elsewhere, as large as they like
  uint64_t session_memory = 0;  // that histories may then take: no more than --session-memory
};

// kInvalid when sessions are to be saved by name in --disk-path, where nobody limits how many.
Result<DiskShares> ShareDisk(const TierOptions& options, uint64_t session_memory);

}  // namespace cachalot::cli
