// Random GGUF blocks and activations for tests and benches of the matmul kernels.
// Threads:   pure.
// Ownership: results belong to the caller.
// Invariant: the same seed gives the same bytes everywhere.
// Cost:      linear.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/tensor_type.h"

namespace cachalot::kernels::testing {

inline constexpr TensorType kAllTypes[] = {TensorType::kF32,  TensorType::kF16,  TensorType::kBF16, TensorType::kQ4_0,
                                           TensorType::kQ4_1, TensorType::kQ5_0, TensorType::kQ5_1, TensorType::kQ8_0,
                                           TensorType::kQ4_K, TensorType::kQ5_K, TensorType::kQ6_K};

enum class Fill {
  kModel,    // random weights, scales as models have them
  kLeast,    // every weight at its least, random scales
  kGreatest  // every weight and sub-scale at its greatest
};

// Blocks that hold `count` elements.
std::vector<std::byte> RandomBlocks(TensorType type, uint64_t count, uint64_t seed, Fill fill = Fill::kModel);

// Roughly normal, with outliers.
std::vector<float> RandomFloats(uint64_t count, uint64_t seed);

}  // namespace cachalot::kernels::testing
