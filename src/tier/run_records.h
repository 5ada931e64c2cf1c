// RecordsOf cuts a run into the records that it is written in.
// Threads:   a pure function.
// Ownership: none.
// Invariant: the records' blocks are those of the run, in order; each record has one block, and more while they fit.
// Cost:      linear in the run.
#pragma once

#include <cstdint>
#include <vector>

#include "tier/disk_format.h"
#include "tier/kv_run.h"

namespace cachalot::tier {

// With payloads of at most `record_bytes`, where a block is no larger. Blocks are as if stored unpacked; segment,
// sequence, time and checksums are not set.
std::vector<RecordHeader> RecordsOf(const KvRun& run, uint64_t slot_bytes, uint64_t record_bytes);

}  // namespace cachalot::tier
