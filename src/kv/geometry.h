// KvGeometry is what KV accounting needs to know of a layout: counts, never bytes.
// Threads:   plain data and pure functions.
// Ownership: none.
// Invariant: slots is the size of the one pool that serves all groups.
// Cost:      O(groups).
#pragma once

#include <cstdint>
#include <vector>

namespace cachalot {
struct KvLayout;
}

namespace cachalot::kv {

struct KvGeometry {
  uint32_t block_tokens = 16;
  std::vector<uint32_t> windows;  // one per layer group; 0: full attention
  uint32_t slots = 0;
};

inline constexpr uint32_t kNoSlot = 0xFFFFFFFF;  // where a slot number stands, and there is none

// Page tables count blocks in 32 bits.
inline constexpr uint64_t kMaxSequenceBlocks = 0xFFFFFFFF;

// Blocks that `tokens` positions from 0 on take.
constexpr uint64_t BlocksFor(uint64_t tokens, uint32_t block_tokens) {
  return tokens / block_tokens + (tokens % block_tokens != 0 ? 1 : 0);
}
// The first logical block that a row at position `next_row`, or any later one, may see.
constexpr uint64_t FirstBlockKept(uint32_t window, uint64_t next_row, uint32_t block_tokens) {
  return window == 0 || next_row < window ? 0 : (next_row - window + 1) / block_tokens;
}

KvGeometry GeometryOf(const KvLayout& layout, uint32_t slots);
// The same with only its groups of full attention, or only the sliding ones.
KvGeometry FullPart(const KvGeometry& geometry);
KvGeometry SlidingPart(const KvGeometry& geometry);

// Slots that a sequence of `tokens` holds between steps, windows respected.
uint64_t SlotsHeld(const KvGeometry& geometry, uint64_t tokens);
// The most slots that a sequence holds at any moment while it grows from nothing to `tokens` in steps of at most
// `step_tokens`, cut anywhere. Requires step_tokens > 0.
uint64_t PeakSlots(const KvGeometry& geometry, uint64_t tokens, uint32_t step_tokens);
// The same for a prompt that is computed once and then forked into `sequences` that each grow to `total_tokens`:
// full blocks of the prompt are shared; each fork may copy the unfilled tail. Requires sequences > 0.
uint64_t PeakSlotsForked(const KvGeometry& geometry, uint64_t prompt_tokens, uint64_t total_tokens, uint32_t sequences,
                         uint32_t step_tokens);
// What must be set aside for it: the peaks of its full and of its sliding groups. They need not fall into the same
// step, but full groups are promised only as far as a hit does not share them, sliding ones always.
struct PromisedSlots {
  uint64_t full = 0;
  uint64_t sliding = 0;
  uint64_t both() const { return full + sliding; }
};
PromisedSlots SlotsToPromise(const KvGeometry& geometry, uint64_t prompt_tokens, uint64_t total_tokens,
                             uint32_t sequences, uint32_t step_tokens);
// The longest sequence whose SlotsToPromise fits `slots`; kMaxSequenceBlocks blocks where windows bound every group.
uint64_t LargestSequence(const KvGeometry& geometry, uint32_t step_tokens);

}  // namespace cachalot::kv
