// The vector traits of simd-inl.h on AVX-512 F, BW, DQ and VL: one 512-bit register.
// Threads:   pure.
// Ownership: none.
// Invariant: equal to simd_scalar-inl.h lane by lane; included only by *_avx512.cc.
// Cost:      one instruction each, reductions eight.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace cachalot::kernels::isa_avx512 {
namespace {

struct Vec {
  __m512 v;
};
struct Int {
  __m512i v;
};
using Mask = __mmask16;

// The forms with a full zero mask compile to the plain instructions; the unmasked intrinsics of g++ 12 read an
// uninitialised register on paper, which -Wall reports.
inline constexpr __mmask16 kAll = 0xffff;

inline Vec Zero() { return {_mm512_setzero_ps()}; }
inline Vec Set(float x) { return {_mm512_set1_ps(x)}; }
inline Vec Load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void Store(float* p, Vec a) { _mm512_storeu_ps(p, a.v); }
// Bit i set for lanes i < n; n may be above 16.
inline Mask FirstLanes(uint32_t n) { return n >= 16 ? kAll : static_cast<Mask>((1u << n) - 1u); }
inline Vec LoadPartial(const float* p, uint32_t n) { return {_mm512_maskz_loadu_ps(FirstLanes(n), p)}; }
inline void StorePartial(float* p, uint32_t n, Vec a) { _mm512_mask_storeu_ps(p, FirstLanes(n), a.v); }

inline Vec Add(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Vec Sub(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Vec Mul(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Vec Div(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Vec Fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline Vec Fnma(Vec a, Vec b, Vec c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
inline Vec Sqrt(Vec a) { return {_mm512_maskz_sqrt_ps(kAll, a.v)}; }
inline Vec Max(Vec a, Vec b) { return {_mm512_maskz_max_ps(kAll, a.v, b.v)}; }
inline Vec Min(Vec a, Vec b) { return {_mm512_maskz_min_ps(kAll, a.v, b.v)}; }

inline Int BitsOf(Vec a) { return {_mm512_castps_si512(a.v)}; }
inline Vec FromBits(Int a) { return {_mm512_castsi512_ps(a.v)}; }
inline Vec Abs(Vec a) {
  return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(a.v), _mm512_set1_epi32(0x7fffffff)))};
}

inline Int ISet(int32_t x) { return {_mm512_set1_epi32(x)}; }
inline Int ILoad(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
inline void IStore(int32_t* p, Int a) { _mm512_storeu_si512(p, a.v); }
inline Int IAdd(Int a, Int b) { return {_mm512_add_epi32(a.v, b.v)}; }
inline Int ISub(Int a, Int b) { return {_mm512_sub_epi32(a.v, b.v)}; }
inline Int IAnd(Int a, Int b) { return {_mm512_and_si512(a.v, b.v)}; }
inline Int IOr(Int a, Int b) { return {_mm512_or_si512(a.v, b.v)}; }
template <int n>
inline Int ShiftLeft(Int a) {
  return {_mm512_maskz_slli_epi32(kAll, a.v, n)};
}
template <int n>
inline Int ShiftRight(Int a) {  // logical
  return {_mm512_maskz_srli_epi32(kAll, a.v, n)};
}
template <int n>
inline Int ShiftRightSigned(Int a) {
  return {_mm512_maskz_srai_epi32(kAll, a.v, n)};
}
inline Int RoundToInt(Vec a) { return {_mm512_maskz_cvtps_epi32(kAll, a.v)}; }
inline Vec ToFloat(Int a) { return {_mm512_maskz_cvtepi32_ps(kAll, a.v)}; }

inline Mask Less(Vec a, Vec b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ); }
inline Mask LessEqual(Vec a, Vec b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ); }
inline Mask Equal(Vec a, Vec b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ); }
inline Vec Select(Mask m, Vec yes, Vec no) { return {_mm512_mask_blend_ps(m, no.v, yes.v)}; }
inline Mask LanesInRange(uint32_t begin, uint32_t end) {
  return static_cast<Mask>(FirstLanes(end) & ~FirstLanes(begin));
}
inline uint32_t BitsOfMask(Mask m) { return m; }

inline Vec LoadF16(const uint16_t* p) {
  return {_mm512_maskz_cvtph_ps(kAll, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline Vec LoadBf16(const uint16_t* p) {
  const __m512i wide = _mm512_maskz_cvtepu16_epi32(kAll, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return FromBits(ShiftLeft<16>({wide}));
}
inline void StoreF16(uint16_t* p, Vec a) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_cvtps_ph(kAll, a.v, kNearest));
}
inline void StoreBf16(uint16_t* p, Vec a) {
  const Int bits = BitsOf(a);
  const Int odd = IAnd(ShiftRight<16>(bits), ISet(1));
  const Int rounded = IAdd(bits, IAdd(odd, ISet(0x7fff)));
  const Int quiet = IOr(bits, ISet(0x400000));
  const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  const Int kept = {_mm512_mask_blend_epi32(nan, rounded.v, quiet.v)};
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_cvtepi32_epi16(kAll, ShiftRight<16>(kept).v));
}

inline __m256 LowHalf(__m512 a) { return _mm512_maskz_extractf32x8_ps(0xff, a, 0); }
inline __m256 HighHalf(__m512 a) { return _mm512_maskz_extractf32x8_ps(0xff, a, 1); }
inline float ReduceAdd(Vec a) {
  const __m256 v8 = _mm256_add_ps(LowHalf(a.v), HighHalf(a.v));
  const __m128 v4 = _mm_add_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
  const __m128 v2 = _mm_add_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_add_ss(v2, _mm_movehdup_ps(v2)));
}
inline float ReduceMax(Vec a) {
  const __m256 v8 = _mm256_max_ps(LowHalf(a.v), HighHalf(a.v));
  const __m128 v4 = _mm_max_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
  const __m128 v2 = _mm_max_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_max_ss(v2, _mm_movehdup_ps(v2)));
}

// Two vectors of kParts reductions in progress each become one of 2*kParts: every part is folded in halves.
template <int kParts, class Fold>
inline __m512 FoldTwo(__m512 a, __m512 b, Fold fold) {
  if constexpr (kParts == 1) {
    return fold(_mm512_maskz_shuffle_f32x4(kAll, a, b, 0x44), _mm512_maskz_shuffle_f32x4(kAll, a, b, 0xee));
  } else if constexpr (kParts == 2) {
    return fold(_mm512_maskz_shuffle_f32x4(kAll, a, b, 0x88), _mm512_maskz_shuffle_f32x4(kAll, a, b, 0xdd));
  } else if constexpr (kParts == 4) {
    return fold(_mm512_maskz_shuffle_ps(kAll, a, b, 0x44), _mm512_maskz_shuffle_ps(kAll, a, b, 0xee));
  } else {
    return fold(_mm512_maskz_shuffle_ps(kAll, a, b, 0x88), _mm512_maskz_shuffle_ps(kAll, a, b, 0xdd));
  }
}
template <class Fold>
inline Vec ReduceEach(const float* p, Fold fold) {
  __m512 quarters[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const auto vec = [&](int index) { return _mm512_loadu_ps(p + 16 * (i + index)); };
    quarters[i] = FoldTwo<2>(FoldTwo<1>(vec(0), vec(4), fold), FoldTwo<1>(vec(8), vec(12), fold), fold);
  }
  return {FoldTwo<8>(FoldTwo<4>(quarters[0], quarters[1], fold), FoldTwo<4>(quarters[2], quarters[3], fold), fold)};
}
inline Vec ReduceAddEach(const float* p) {
  return ReduceEach(p, [](__m512 a, __m512 b) { return _mm512_add_ps(a, b); });
}
inline Vec ReduceMaxEach(const float* p) {
  return ReduceEach(p, [](__m512 a, __m512 b) { return _mm512_maskz_max_ps(kAll, a, b); });
}
inline Vec LoadTwice(const float* p) {
  const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  return {_mm512_maskz_permutexvar_ps(kAll, twice, _mm512_maskz_loadu_ps(0xff, p))};
}
inline Vec SwapNeighbours(Vec a) { return {_mm512_maskz_permute_ps(kAll, a.v, 0xb1)}; }
inline float FmaOne(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

}  // namespace
}  // namespace cachalot::kernels::isa_avx512
