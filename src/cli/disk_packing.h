// Whether KV is packed on its way to disk: as asked, or where that brings it back sooner.
// Threads:   any.
// Ownership: none.
// Invariant: `auto` packs only where a measured disk is so slow that it pays.
// Cost:      `auto` tries the codec on a MiB: some milliseconds.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/kv_layout.h"
#include "base/status.h"
#include "base/tier_rate.h"
#include "cli/tier_options.h"
#include "cost/packing.h"

namespace cachalot::cli {

// Of normally distributed values, on one thread.
cost::PackingSpeed TryPacking(KvType type, Clock& clock);

// Bytes of the elements that are packed; 0: KV is kept as it is. Warns where packing is asked for and loses time.
Result<uint32_t> PackedElementBytes(const TierOptions& options, KvType type, const TierRateTable& measured,
                                    Clock& clock);

}  // namespace cachalot::cli
