#include "cli/host_memory.h"

#include <utility>

#include <fmt/format.h>

#include "base/memory_info.h"
#include "base/units.h"
#include "cli/compatibility.h"
#include "tier/numa_plan.h"

namespace cachalot::cli {

Result<std::unique_ptr<HostMemory>> ClaimHostMemory(const TierOptions& options, const KvLayout& layout,
                                                    uint64_t staging_bytes) {
  const uint64_t bytes = options.host_memory.bytes;
  if (bytes == 0) return std::unique_ptr<HostMemory>();
  CACHALOT_RETURN_IF_ERROR(tier::CheckCellEviction(options.host_eviction).Annotate("--host-eviction"));
  if (!(options.host_share > 0 && options.host_share <= 1)) {
    return Invalid(fmt::format("--host-share is {}; expected more than 0, at most 1", options.host_share));
  }
  CACHALOT_RETURN_IF_ERROR(CheckSizes(options, {.staging_bytes = staging_bytes}));
  CACHALOT_ASSIGN_OR_RETURN(const MemoryInfo available, ReadMemoryInfo());
  const Result<tier::NumaTopology> topology = tier::ReadNumaTopology();
  Result<tier::HostArena> arena =
      tier::HostArena::Claim({.bytes = bytes - staging_bytes, .most_share = options.host_share}, available,
                             topology.ok() ? *topology : tier::NumaTopology());
  if (!arena.ok()) return arena.status().Annotate("--host-memory");
  Result<std::unique_ptr<tier::HostTier>> tier =
      tier::HostTier::Make(arena->bytes(), {.slot_bytes = layout.slot_bytes,
                                            .groups = static_cast<uint32_t>(layout.groups.size()),
                                            .eviction = options.host_eviction});
  if (!tier.ok()) return tier.status().Annotate("--host-memory");
  return std::make_unique<HostMemory>(HostMemory{std::move(arena).value(), std::move(tier).value()});
}

std::string NoteOn(const HostMemory* memory, uint32_t hot_slots, std::string_view device) {
  if (memory == nullptr) {
    return device == "cpu" ? "the KV budget lies in the same memory" : "what the KV budget has no room for is dropped";
  }
  const uint32_t cells = memory->tier->cells();
  return fmt::format("{} blocks beside the KV budget's{}; {}", FormatCount(cells),
                     cells < hot_slots ? ", fewer than it holds" : "", memory->arena.placement());
}

}  // namespace cachalot::cli
