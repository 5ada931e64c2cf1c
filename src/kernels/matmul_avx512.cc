#include "kernels/matmul.h"
#include "kernels/simd_avx512-inl.h"

namespace cachalot::kernels::isa_avx512 {

#include "kernels/simd-inl.h"

namespace {

inline constexpr uint32_t kSlabGroups = 32;  // 16 KiB of weights per panel

struct Bytes {
  __m512i v;
};

inline constexpr uint32_t kQuantSmallRows = 8;
inline constexpr uint32_t kQuantPanels = 2;
constexpr int QuantRowsOf(ScaleKind kind) { return kind == ScaleKind::kSuperPair ? 4 : 6; }
inline constexpr uint32_t kFloatSmallRows = 4;
inline constexpr uint32_t kFloatRows = 8;
inline constexpr uint32_t kFloatPanels = 2;
constexpr int SmallPanels(int) { return 4; }

inline Bytes LoadBytes(const std::byte* p) { return {_mm512_load_si512(p)}; }
inline void StoreBytes(std::byte* p, Bytes b) { _mm512_store_si512(p, b.v); }
inline Bytes LowNibbles(Bytes b) { return {_mm512_and_si512(b.v, _mm512_set1_epi8(15))}; }
inline Bytes HighNibbles(Bytes b) { return LowNibbles({_mm512_srli_epi16(b.v, 4)}); }
inline Bytes Or(Bytes a, Bytes b) { return {_mm512_or_si512(a.v, b.v)}; }
template <int position, int mask>
inline Bytes TopBits(Bytes b) {
  const __m512i moved = position < 4 ? _mm512_slli_epi16(b.v, position < 4 ? 4 - position : 0)
                                     : _mm512_srli_epi16(b.v, position < 4 ? 0 : position - 4);
  return {_mm512_and_si512(moved, _mm512_set1_epi8(mask << 4))};
}
inline __m128i LoadSixteen(const std::byte* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
inline Vec LoadU8(const std::byte* p) { return ToFloat({_mm512_maskz_cvtepu8_epi32(kAll, LoadSixteen(p))}); }
inline Vec LoadI8(const std::byte* p) { return ToFloat({_mm512_maskz_cvtepi8_epi32(kAll, LoadSixteen(p))}); }
inline void StoreInt8(int8_t* p, Int a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_maskz_cvtepi32_epi8(kAll, a.v));
}

inline int32_t HalfSums(const int8_t* values) {
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
  const __m256i fours = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), bytes);
  const __m256i twos = _mm256_hadd_epi32(fours, fours);
  const __m256i ones = _mm256_hadd_epi32(twos, twos);
  const uint32_t low = static_cast<uint32_t>(_mm256_extract_epi32(ones, 0));
  const uint32_t high = static_cast<uint32_t>(_mm256_extract_epi32(ones, 4));
  return static_cast<int32_t>((high << 16) | (low & 0xffffu));
}
template <class S>
inline constexpr int kDotBias = 0;

inline __m512i FourOf(const int8_t* x) {
  int32_t four;
  __builtin_memcpy(&four, x, sizeof four);
  return _mm512_set1_epi32(four);
}
template <int R, int P>
inline void AddStep(const Bytes (&weights)[P], const int8_t* x, uint64_t stride, Int (&dots)[R][P]) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const __m512i four = FourOf(x + r * stride);
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) dots[r][p].v = _mm512_dpbusd_epi32(dots[r][p].v, weights[p].v, four);
  }
}
template <class S, int R, int P, int first, int last>
inline void Dots(const S& w, uint32_t group, const int8_t* x, uint64_t stride, const int32_t* start,
                 Int (&dots)[R][P]) {
  if constexpr (first < last) {
    Dots<S, R, P, first, last - 1>(w, group, x, stride, start, dots);
  } else {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) dots[r][p] = ISet(S::kFormat.offset == 0 ? 0 : start[r * kSlabGroups]);
    }
  }
  Bytes even[P], odd[P];
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p) w.template Steps<last>(p, group, even[p], odd[p]);
  AddStep(even, x + 8 * last, stride, dots);
  AddStep(odd, x + 8 * last + 4, stride, dots);
}

}  // namespace

#include "kernels/matmul-inl.h"
#include "kernels/matmul_float-inl.h"
#include "kernels/matmul_quant-inl.h"
#include "kernels/matmul_table-inl.h"

}  // namespace cachalot::kernels::isa_avx512

namespace cachalot::kernels {

const MatmulKernels& MatmulAvx512() { return isa_avx512::kMatmul; }

}  // namespace cachalot::kernels
