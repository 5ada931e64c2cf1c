#include "kernels/matmul.h"
#include "kernels/simd_avx512-inl.h"

namespace cachalot::kernels::isa_avx512 {

#include "kernels/simd-inl.h"

namespace {

struct Bytes {
  __m512i v;
};

inline constexpr uint32_t kQuantSmallRows = 4;
inline constexpr uint32_t kQuantRows = 8;
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
  const __m512i moved =
      position < 4 ? _mm512_slli_epi16(b.v, position < 4 ? 4 - position : 0) : _mm512_srli_epi16(b.v, position < 4 ? 0 : position - 4);
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
template <int low, int high>
inline Int AddPairDot(Int sum, const int32_t* pair) {
  constexpr int32_t kWeights = static_cast<int32_t>((uint32_t(high) << 16) | (uint32_t(low) & 0xffffu));
  return {_mm512_dpwssd_epi32(sum.v, _mm512_set1_epi32(kWeights), _mm512_set1_epi32(*pair))};
}

template <class S>
inline constexpr int kDotBias = 0;

inline __m512i FourOf(const int8_t* x) {
  int32_t four;
  __builtin_memcpy(&four, x, sizeof four);
  return _mm512_set1_epi32(four);
}
template <class S, int R, int first, int last>
inline void Dots(const S& w, uint64_t group, const int8_t* x, uint64_t stride, Int (&sum)[R]) {
  if constexpr (first < last) {
    Dots<S, R, first, last - 1>(w, group, x, stride, sum);
  } else {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum[r] = ISet(0);
  }
  Bytes even, odd;
  w.template Steps<last>(group, even, odd);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) sum[r].v = _mm512_dpbusd_epi32(sum[r].v, even.v, FourOf(x + r * stride + 8 * last));
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) sum[r].v = _mm512_dpbusd_epi32(sum[r].v, odd.v, FourOf(x + r * stride + 8 * last + 4));
}

}  // namespace

#include "kernels/matmul-inl.h"
#include "kernels/matmul_float-inl.h"
#include "kernels/matmul_quant-inl.h"
//
#include "kernels/matmul_entry-inl.h"

}  // namespace cachalot::kernels::isa_avx512

namespace cachalot::kernels {

const MatmulKernels& MatmulAvx512() { return isa_avx512::kMatmul; }

}  // namespace cachalot::kernels
