#include "kernels/dequantize.h"

#include <cstring>

#include "kernels/half-inl.h"
#include "kernels/quant_blocks.h"

namespace cachalot::kernels {
namespace {

// source may be unaligned.
template <class Convert>
void WidenHalves(const std::byte* source, uint64_t count, float* out, Convert convert) {
  for (uint64_t i = 0; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, source + 2 * i, sizeof half);
    out[i] = convert(half);
  }
}

}  // namespace

void Dequantize(TensorType type, const std::byte* source, uint64_t count, float* out) {
  switch (type) {
    case TensorType::kF32: std::memcpy(out, source, count * sizeof(float)); return;
    case TensorType::kF16: return WidenHalves(source, count, out, FloatOfF16);
    case TensorType::kBF16: return WidenHalves(source, count, out, FloatOfBf16);
    default: break;
  }
  for (uint64_t group = 0; group < count / kGroup; ++group) {
    DequantizeGroup(type, ReadGroup(type, source, group), out + group * kGroup);
  }
}

}  // namespace cachalot::kernels
