// PanelView shows a PackedMatrix to the matmul kernels: plain numbers, so that they see no class.
// Threads:   plain data.
// Ownership: borrows the matrix's bytes.
// Invariant: the layout below; panel i starts at data + i * panel_bytes, 64-byte aligned.
// Cost:      none.
//
// A panel is 16 rows. Float formats: [columns][16 rows] in the source's precision. Quantised formats: first the
// weights, then the scales, each in ascending groups of 32 columns.
//   weights  A group is 8 steps of 4 columns; a step of 8-bit weights is 64 bytes, [16 rows][4 columns], unsigned.
//            bits 4: 4 chunks of 64 bytes, chunk i has step 2i in its low nibbles and step 2i + 1 in its high ones.
//            bits 5: those, then 64 bytes whose byte b holds in bit s the fifth bit of byte b of step s.
//            bits 6: those, then 2 x 64 bytes; byte b of part p holds in bits 2j, 2j + 1 the top bits of step 4p + j.
//            bits 8: the 8 steps.
//   scales   kHalf      per group d f16[16]
//            kHalfMin   per group d f16[16], m f16[16]
//            kSuperMin  per 8 groups d f16[16], dmin f16[16], then per group scale u8[16], min u8[16]
//            kSuperPair per 8 groups d f16[16], then per group scale i8[16] of its first and i8[16] of its second half
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/tensor_type.h"

namespace cachalot::kernels {

inline constexpr uint32_t kPanelRows = 16;
inline constexpr uint32_t kGroup = 32;      // activations share a scale over this many columns
inline constexpr uint32_t kHalfGroup = 16;  // Q6_K has a scale for each

struct PanelView {
  const std::byte* data = nullptr;
  uint64_t panel_bytes = 0;
  uint32_t rows = 0;
  uint32_t columns = 0;
  TensorType type = TensorType::kF32;
};

enum class ScaleKind : uint8_t { kHalf, kHalfMin, kSuperMin, kSuperPair };

// weight = d * (unsigned weight - offset), or d * unsigned weight + m.
struct QuantFormat {
  uint32_t bits = 0;  // 0: a float format
  uint32_t offset = 0;
  ScaleKind scales = ScaleKind::kHalf;
};

namespace {

constexpr QuantFormat FormatOf(TensorType type) {
  switch (type) {
    case TensorType::kQ4_0: return {4, 8, ScaleKind::kHalf};
    case TensorType::kQ4_1: return {4, 0, ScaleKind::kHalfMin};
    case TensorType::kQ5_0: return {5, 16, ScaleKind::kHalf};
    case TensorType::kQ5_1: return {5, 0, ScaleKind::kHalfMin};
    case TensorType::kQ8_0: return {8, 128, ScaleKind::kHalf};
    case TensorType::kQ4_K: return {4, 0, ScaleKind::kSuperMin};
    case TensorType::kQ5_K: return {5, 0, ScaleKind::kSuperMin};
    case TensorType::kQ6_K: return {6, 32, ScaleKind::kSuperPair};
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBF16: break;
  }
  return {};
}

constexpr bool HasMin(ScaleKind kind) { return kind == ScaleKind::kHalfMin || kind == ScaleKind::kSuperMin; }

constexpr uint32_t WeightBytesPerGroup(uint32_t bits) { return bits * (kPanelRows * kGroup / 8); }

constexpr uint32_t GroupsPerScaleBlock(ScaleKind kind) {
  return kind == ScaleKind::kSuperMin || kind == ScaleKind::kSuperPair ? 8 : 1;
}

constexpr uint32_t ScaleBlockBytes(ScaleKind kind) {
  switch (kind) {
    case ScaleKind::kHalf: return 2 * kPanelRows;
    case ScaleKind::kHalfMin: return 4 * kPanelRows;
    case ScaleKind::kSuperMin: return 4 * kPanelRows + 8 * 2 * kPanelRows;
    case ScaleKind::kSuperPair: return 2 * kPanelRows + 8 * 2 * kPanelRows;
  }
  return 0;
}

constexpr uint32_t FloatBytes(TensorType type) { return type == TensorType::kF32 ? 4 : 2; }

// Bytes from the start of a panel of a quantised format to its scales.
constexpr uint64_t ScalesOffset(QuantFormat format, uint64_t columns) {
  return columns / kGroup * WeightBytesPerGroup(format.bits);
}

}  // namespace
}  // namespace cachalot::kernels
