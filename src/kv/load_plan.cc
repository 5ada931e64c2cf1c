#include "kv/load_plan.h"

#include <algorithm>

namespace cachalot::kv {
namespace {

// Of the blocks before `end`, the last of which may be short, those that a row at `position` sees.
bool GroupIsThere(const KvGeometry& geometry, uint32_t group, uint64_t resident, uint64_t end, uint64_t position,
                  std::span<const uint32_t> stored) {
  const uint64_t first = FirstBlockKept(geometry.windows[group], position, geometry.block_tokens);
  for (uint64_t block = std::max(first, resident); block < end; ++block) {
    if ((stored[block - resident] >> group & 1) == 0) return false;
  }
  return true;
}

}  // namespace

uint64_t LoadableTokens(const KvGeometry& geometry, uint64_t resident_blocks, std::span<const uint32_t> stored,
                        uint32_t last_tokens) {
  const auto groups = static_cast<uint32_t>(geometry.windows.size());
  uint32_t full = 0;
  for (uint32_t group = 0; group < groups; ++group) full |= geometry.windows[group] == 0 ? 1u << group : 0;
  uint64_t end = resident_blocks;
  while (end - resident_blocks < stored.size() && (stored[end - resident_blocks] & full) == full) ++end;
  for (; end > resident_blocks; --end) {
    const bool last = end - resident_blocks == stored.size();
    const uint64_t position = end * geometry.block_tokens - (last ? geometry.block_tokens - last_tokens : 0);
    bool there = true;
    for (uint32_t group = 0; there && group < groups; ++group) {
      there = geometry.windows[group] == 0 || GroupIsThere(geometry, group, resident_blocks, end, position, stored);
    }
    if (there) return position;
  }
  return 0;
}

}  // namespace cachalot::kv
