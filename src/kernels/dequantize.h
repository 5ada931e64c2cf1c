// Dequantises GGUF tensor rows to f32, bit for bit as the `gguf` Python package does.
// Threads:   pure.
// Ownership: none.
// Invariant: reads exactly the blocks that hold `count` elements.
// Cost:      linear, scalar; used at load time and for embedding rows, not in matmul.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"

namespace cachalot::kernels {

// out[count] from `count` elements of `type` at `source`. Requires count to be a multiple of the type's block.
void Dequantize(TensorType type, const std::byte* source, uint64_t count, float* out);

}  // namespace cachalot::kernels
