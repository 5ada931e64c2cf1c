// HostMemory is the tier below the hot pool that --host-memory asks for.
// Threads:   claimed by the main thread; then the engine's.
// Ownership: owns the memory and the tier in it.
// Invariant: with the staging of the disk tier it takes no more than --host-memory.
// Cost:      the memory is claimed and touched at start.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/kv_layout.h"
#include "base/status.h"
#include "cli/tier_options.h"
#include "tier/host_arena.h"
#include "tier/host_tier.h"

namespace cachalot::cli {

struct HostMemory {
  tier::HostArena arena;
  std::unique_ptr<tier::HostTier> tier;
};

// Null when none is asked for. `staging_bytes` are claimed already and count.
Result<std::unique_ptr<HostMemory>> ClaimHostMemory(const TierOptions& options, const KvLayout& layout,
                                                    uint64_t staging_bytes);

// One line to print at start; `memory` may be null. `hot_slots`: of the KV pool on `device`.
std::string NoteOn(const HostMemory* memory, uint32_t hot_slots, std::string_view device);

}  // namespace cachalot::cli
