// MeasureDisk measures how fast KV goes to a disk and comes back, over the very code that a server uses.
// Threads:   main thread; transfers on threads of their own.
// Ownership: a folder of its own below the one that is named, removed afterwards.
// Invariant: what is read was on the disk: it goes past the page cache where the file system can do that.
// Cost:      a hundred MiB or so, written, synced and read.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "base/tier_rate.h"

namespace cachalot::cli {

// Latency is that of the smallest run there is, of one block of `block_bytes`.
Result<TierRateTable> MeasureDisk(const std::string& folder, uint64_t block_bytes, Clock& clock);

}  // namespace cachalot::cli
