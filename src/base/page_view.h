// PageView shows kernels the KV of one layer of one sequence: a list of slots in position order.
// Threads:   plain data; the bytes behind it are written only by the step that owns them.
// Ownership: borrows the arena and the slot list.
// Invariant: slots[i] holds logical block first_block + i; a position's slot is present while any row may see it.
// Cost:      none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/kv_layout.h"

namespace cachalot {

// A sequence's blocks in one layer group.
struct PageTableRef {
  const uint32_t* slots = nullptr;
  uint32_t slot_count = 0;
  uint32_t first_block = 0;  // logical index of slots[0]; > 0 once a window has moved on
};

struct PageView {
  std::byte* arena = nullptr;
  uint64_t slot_bytes = 0;
  PageTableRef pages;
  uint64_t k_offset = 0;  // of this layer in a slot
  uint64_t v_offset = 0;
  uint32_t block_tokens = 16;
  uint32_t kv_heads = 0;
  uint32_t k_dim = 0;
  uint32_t v_dim = 0;
  KvType type = KvType::kF16;
};

// The slot bytes that hold `position`. Requires that the block is present. Static: a copy shared with files of another
// instruction set would be a weak symbol.
static inline std::byte* BlockOf(const PageView& view, uint64_t position) {
  const uint64_t block = position / view.block_tokens - view.pages.first_block;
  return view.arena + uint64_t{view.pages.slots[block]} * view.slot_bytes;
}

}  // namespace cachalot
