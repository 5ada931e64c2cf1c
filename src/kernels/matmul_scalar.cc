#include "kernels/matmul.h"
#include "kernels/simd_scalar-inl.h"

namespace cachalot::kernels::isa_scalar {

#include "kernels/simd-inl.h"

namespace {

inline constexpr uint32_t kSlabGroups = 32;  // 16 KiB of weights per panel

struct Bytes {
  uint8_t v[64];
};

inline constexpr uint32_t kQuantSmallRows = 1;
inline constexpr uint32_t kQuantPanels = 1;
constexpr int QuantRowsOf(ScaleKind) { return 1; }
inline constexpr uint32_t kFloatSmallRows = 1;
inline constexpr uint32_t kFloatRows = 1;
inline constexpr uint32_t kFloatPanels = 1;
constexpr int SmallPanels(int) { return 1; }

inline Bytes LoadBytes(const std::byte* p) {
  Bytes out;
  for (int i = 0; i < 64; ++i) out.v[i] = static_cast<uint8_t>(p[i]);
  return out;
}
inline void StoreBytes(std::byte* p, const Bytes& b) {
  for (int i = 0; i < 64; ++i) p[i] = std::byte{b.v[i]};
}
inline Bytes LowNibbles(const Bytes& b) {
  Bytes out;
  for (int i = 0; i < 64; ++i) out.v[i] = b.v[i] & 15;
  return out;
}
inline Bytes HighNibbles(const Bytes& b) {
  Bytes out;
  for (int i = 0; i < 64; ++i) out.v[i] = b.v[i] >> 4;
  return out;
}
inline Bytes Or(const Bytes& a, const Bytes& b) {
  Bytes out;
  for (int i = 0; i < 64; ++i) out.v[i] = a.v[i] | b.v[i];
  return out;
}
template <int position, int mask>
inline Bytes TopBits(const Bytes& b) {
  Bytes out;
  for (int i = 0; i < 64; ++i) out.v[i] = static_cast<uint8_t>(((b.v[i] >> position) & mask) << 4);
  return out;
}
inline Vec LoadU8(const std::byte* p) {
  return EachLane([&](int i) { return static_cast<float>(static_cast<uint8_t>(p[i])); });
}
inline Vec LoadI8(const std::byte* p) {
  return EachLane([&](int i) { return static_cast<float>(static_cast<int8_t>(p[i])); });
}
inline void StoreInt8(int8_t* p, const Int& a) {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<int8_t>(a.v[i]);
}

inline int32_t HalfSums(const int8_t* values) {
  int32_t low = 0, high = 0;
  for (int i = 0; i < 16; ++i) {
    low += values[i];
    high += values[i + 16];
  }
  return static_cast<int32_t>((uint32_t(high) << 16) | (uint32_t(low) & 0xffffu));
}
template <class S>
inline constexpr int kDotBias = 0;

inline void AddStep(const Bytes& weights, const int8_t* x, Int& sum) {
  for (int row = 0; row < 16; ++row) {
    for (int i = 0; i < 4; ++i) sum.v[row] += int32_t{weights.v[4 * row + i]} * x[i];
  }
}
template <class S, int R, int P, int first, int last>
inline void Dots(const S& w, uint32_t group, const int8_t* x, uint64_t stride, const int32_t* start,
                 Int (&dots)[R][P]) {
  static_assert(R == 1 && P == 1);
  if constexpr (first < last) {
    Dots<S, R, P, first, last - 1>(w, group, x, stride, start, dots);
  } else {
    dots[0][0] = ISet(S::kFormat.offset == 0 ? 0 : *start);
  }
  Bytes even, odd;
  w.template Steps<last>(0, group, even, odd);
  AddStep(even, x + 8 * last, dots[0][0]);
  AddStep(odd, x + 8 * last + 4, dots[0][0]);
}

}  // namespace

#include "kernels/matmul-inl.h"
#include "kernels/matmul_float-inl.h"
#include "kernels/matmul_quant-inl.h"
#include "kernels/matmul_table-inl.h"

}  // namespace cachalot::kernels::isa_scalar

namespace cachalot::kernels {

const MatmulKernels& MatmulScalar() { return isa_scalar::kMatmul; }

}  // namespace cachalot::kernels
