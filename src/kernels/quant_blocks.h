// Takes GGUF blocks of the quantised formats apart, one group of 32 weights at a time.
// Threads:   pure.
// Ownership: none.
// Invariant: reads inside the blocks that hold the group.
// Cost:      some nanoseconds per group; load time and embedding rows only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/panel_view.h"

namespace cachalot::kernels {

struct QuantGroup {
  uint8_t weights[kGroup] = {};  // unsigned, below 2^bits
  uint16_t d = 0;                // f16 bits, of the block
  uint16_t min = 0;              // f16 bits: m, or dmin of the block; 0 where the format has none
  uint8_t scales[2] = {};        // kSuperMin: scale and min of the group; kSuperPair: i8 scales of its two halves
};

// Group `group` of the row that starts at `row`. Requires a quantised type.
QuantGroup ReadGroup(TensorType type, const std::byte* row, uint64_t group);
// The groups from `first` on.
void ReadGroups(TensorType type, const std::byte* row, uint64_t first, std::span<QuantGroup> out);

// The group's weights as GGUF dequantises them.
void DequantizeGroup(TensorType type, const QuantGroup& group, float* out);

}  // namespace cachalot::kernels
