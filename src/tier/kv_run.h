// KvRun describes consecutive KV blocks of one chain on their way to or from a tier.
// Threads:   plain data.
// Ownership: owns its lists; the bytes travel beside it.
// Invariant: blocks follow each other, the first after `parent`; all are whole but perhaps the last, which is sealed
//            short; tokens are those of all blocks, in order.
// Cost:      none.
//
// The bytes of a run are those of its blocks in order, each the slots of the groups in `groups`, in ascending order of
// group, as they lie in the hot pool.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/status.h"

namespace cachalot::tier {

struct KvRunBlock {
  Digest key{};         // kv/identity.h
  uint32_t tokens = 0;  // up to the block size
  uint32_t groups = 0;  // bit g: layer group g is there (a window may have moved on past it)
  bool operator==(const KvRunBlock&) const = default;
};

struct KvRun {
  Digest identity{};  // kv/identity.h: what the KV was computed with
  Digest parent{};    // key of the block before the first, or the chain's root
  uint64_t first_position = 0;
  std::vector<KvRunBlock> blocks;
  std::vector<TokenId> tokens;
  Nanos deadline = Nanos::max();  // by the tier's clock: from then on it is not found
};

// Bytes of one slot when the whole run has `run_bytes`. kInvalid when it is no run of so many bytes: without blocks,
// with an empty block or one of 4 GiB, with other tokens than its blocks say, or not a whole number of bytes per slot.
Result<uint64_t> SlotBytesOf(const KvRun& run, uint64_t run_bytes);

// Bytes of one block.
inline uint64_t BlockBytes(const KvRunBlock& block, uint64_t slot_bytes) {
  return static_cast<uint64_t>(std::popcount(block.groups)) * slot_bytes;
}

// Of blocks that have these groups.
inline uint64_t BytesOf(std::span<const uint32_t> groups, uint64_t slot_bytes) {
  uint64_t slots = 0;
  for (const uint32_t mask : groups) slots += static_cast<uint64_t>(std::popcount(mask));
  return slots * slot_bytes;
}

}  // namespace cachalot::tier
