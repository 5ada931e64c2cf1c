// LoadableTokens says how far a sequence can go on from what lower tiers hold.
// Threads:   a pure function.
// Ownership: none.
// Invariant: from that length on every group has all that its next row sees.
// Cost:      O(blocks * windows in blocks), at most.
#pragma once

#include <cstdint>
#include <span>

#include "kv/geometry.h"

namespace cachalot::kv {

// The longest length that a sequence of `resident_blocks` whole blocks, whose windows it holds, gets by loading: 0 if
// none beyond them. stored[i]: bit g is set where a lower tier has group g of the i-th block after them; of these the
// last has `last_tokens` tokens, perhaps fewer than a whole one.
uint64_t LoadableTokens(const KvGeometry& geometry, uint64_t resident_blocks, std::span<const uint32_t> stored,
                        uint32_t last_tokens);
inline uint64_t LoadableTokens(const KvGeometry& geometry, uint64_t resident_blocks, std::span<const uint32_t> stored) {
  return LoadableTokens(geometry, resident_blocks, stored, geometry.block_tokens);
}

}  // namespace cachalot::kv
