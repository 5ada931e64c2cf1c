#include "kv/geometry.h"

#include <algorithm>

#include "base/check.h"
#include "base/kv_layout.h"

namespace cachalot::kv {
namespace {

// A step that reaches `tokens` and whose first row stands at `first_row`: the blocks of group `window` that it holds
// from logical block `from` on.
uint64_t BlocksOfStep(const KvGeometry& geometry, uint32_t window, uint64_t tokens, uint64_t first_row, uint64_t from) {
  const uint64_t end = BlocksFor(tokens, geometry.block_tokens);
  return end - std::min(end, std::max(from, FirstBlockKept(window, first_row, geometry.block_tokens)));
}

uint64_t BlocksOfStep(const KvGeometry& geometry, uint64_t tokens, uint64_t first_row, uint64_t from) {
  uint64_t blocks = 0;
  for (const uint32_t window : geometry.windows) blocks += BlocksOfStep(geometry, window, tokens, first_row, from);
  return blocks;
}

// Where the first row of the costliest step stands. Let a step start at L and end at L + step_tokens. Shifting it by
// one block adds one block at its end in every group and takes at most one at its start, so the costliest step ends in
// the last block; among those that end there, the one that starts first keeps most of its windows.
uint64_t CostliestFirstRow(const KvGeometry& geometry, uint64_t tokens, uint32_t step_tokens) {
  const uint64_t last_block_begin = (BlocksFor(tokens, geometry.block_tokens) - 1) * geometry.block_tokens;
  return last_block_begin + 1 - std::min<uint64_t>(last_block_begin + 1, step_tokens);
}

}  // namespace

KvGeometry GeometryOf(const KvLayout& layout, uint32_t slots) {
  KvGeometry geometry;
  geometry.block_tokens = layout.shape.block_tokens;
  geometry.slots = slots;
  for (const LayerGroup& group : layout.groups) geometry.windows.push_back(group.window);
  return geometry;
}

KvGeometry FullPart(const KvGeometry& geometry) {
  KvGeometry part = geometry;
  std::erase_if(part.windows, [](uint32_t window) { return window != 0; });
  return part;
}

KvGeometry SlidingPart(const KvGeometry& geometry) {
  KvGeometry part = geometry;
  std::erase_if(part.windows, [](uint32_t window) { return window == 0; });
  return part;
}

uint64_t SlotsHeld(const KvGeometry& geometry, uint64_t tokens) { return BlocksOfStep(geometry, tokens, tokens, 0); }

uint64_t PeakSlots(const KvGeometry& geometry, uint64_t tokens, uint32_t step_tokens) {
  CACHALOT_CHECK(step_tokens > 0);
  if (tokens == 0) return 0;
  return BlocksOfStep(geometry, tokens, CostliestFirstRow(geometry, tokens, step_tokens), 0);
}

uint64_t PeakSlotsForked(const KvGeometry& geometry, uint64_t prompt_tokens, uint64_t total_tokens, uint32_t sequences,
                         uint32_t step_tokens) {
  CACHALOT_CHECK(sequences > 0);
  const uint64_t prompt_peak = PeakSlots(geometry, prompt_tokens, step_tokens);
  if (total_tokens <= prompt_tokens) return prompt_peak;
  // Blocks that hold prompt only are shared; each sequence has its own from the prompt's unfilled tail on. What is
  // shared and what is not are both largest at the same step, so all sequences may stand there at once.
  const uint64_t own_from = prompt_tokens / geometry.block_tokens;
  const uint64_t first_row = std::max(prompt_tokens, CostliestFirstRow(geometry, total_tokens, step_tokens));
  const uint64_t one = BlocksOfStep(geometry, total_tokens, first_row, 0);
  const uint64_t own = BlocksOfStep(geometry, total_tokens, first_row, own_from);
  return std::max(prompt_peak, one + (sequences - 1) * own);
}

PromisedSlots SlotsToPromise(const KvGeometry& geometry, uint64_t prompt_tokens, uint64_t total_tokens,
                             uint32_t sequences, uint32_t step_tokens) {
  return {PeakSlotsForked(FullPart(geometry), prompt_tokens, total_tokens, sequences, step_tokens),
          PeakSlotsForked(SlidingPart(geometry), prompt_tokens, total_tokens, sequences, step_tokens)};
}

uint64_t LargestSequence(const KvGeometry& geometry, uint32_t step_tokens) {
  uint64_t fits = 0;
  uint64_t too_long = kMaxSequenceBlocks * geometry.block_tokens + 1;
  while (too_long - fits > 1) {
    const uint64_t tokens = fits + (too_long - fits) / 2;
    (SlotsToPromise(geometry, tokens, tokens, 1, step_tokens).both() <= geometry.slots ? fits : too_long) = tokens;
  }
  return fits;
}

}  // namespace cachalot::kv
