// TensorType names how the elements of a weight tensor are stored; the numbers are GGUF's.
// Threads:   pure functions.
// Ownership: none.
// Invariant: a row holds a whole number of blocks.
// Cost:      a table look-up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cachalot {

enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kBF16 = 30,
};

struct TensorTypeInfo {
  TensorType type;
  const char* name;       // as GGUF tools print it, e.g. "Q4_K"
  uint32_t block_values;  // elements per block
  uint32_t block_bytes;   // bytes per block
};

// Nothing for a number that is not one of the above.
std::optional<TensorTypeInfo> FindTensorType(uint32_t ggml_type);
const TensorTypeInfo& InfoOf(TensorType type);
// "F32, F16, ..." for error messages.
std::string SupportedTensorTypes();

}  // namespace cachalot
