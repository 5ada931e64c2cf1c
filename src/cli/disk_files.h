// The file system through which the disk tier sees the disk, as --disk-io asks for it.
// Threads:   as FileSystem.
// Ownership: the caller's.
// Invariant: without --disk-path no ring is made.
// Cost:      with it, that of one ring.
#pragma once

#include <memory>

#include "base/file_system.h"
#include "base/status.h"
#include "cli/tier_options.h"

namespace cachalot::cli {

// kInvalid for another word than auto, pread and io_uring, kUnavailable where io_uring is asked for and does not work.
Result<std::unique_ptr<FileSystem>> FilesFor(const TierOptions& options, const RingOptions& rings = {});

}  // namespace cachalot::cli
