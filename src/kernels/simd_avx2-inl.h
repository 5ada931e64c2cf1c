// The vector traits of simd-inl.h on AVX2, FMA and F16C: two 256-bit halves, lanes 0-7 and 8-15.
// Threads:   pure.
// Ownership: none.
// Invariant: equal to simd_scalar-inl.h lane by lane; included only by *_avx2.cc.
// Cost:      two instructions each, reductions six.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace cachalot::kernels::isa_avx2 {
namespace {

struct Vec {
  __m256 lo, hi;
};
struct Int {
  __m256i lo, hi;
};
struct Mask {
  __m256 lo, hi;  // all bits of a lane set, or none
};

inline Vec Zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline Vec Set(float x) {
  const __m256 v = _mm256_set1_ps(x);
  return {v, v};
}
inline Vec Load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void Store(float* p, Vec a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
// All bits set in the first n of 8 lanes; n may be outside 0..8.
inline __m256i FirstLanes(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline Vec LoadPartial(const float* p, uint32_t n) {
  const int count = static_cast<int>(n);
  const __m256 lo = _mm256_maskload_ps(p, FirstLanes(count));
  if (count <= 8) return {lo, _mm256_setzero_ps()};
  return {lo, _mm256_maskload_ps(p + 8, FirstLanes(count - 8))};
}
inline void StorePartial(float* p, uint32_t n, Vec a) {
  const int count = static_cast<int>(n);
  _mm256_maskstore_ps(p, FirstLanes(count), a.lo);
  if (count > 8) _mm256_maskstore_ps(p + 8, FirstLanes(count - 8), a.hi);
}

inline Vec Add(Vec a, Vec b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
inline Vec Sub(Vec a, Vec b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
inline Vec Mul(Vec a, Vec b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
inline Vec Div(Vec a, Vec b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
inline Vec Fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)}; }
inline Vec Fnma(Vec a, Vec b, Vec c) {
  return {_mm256_fnmadd_ps(a.lo, b.lo, c.lo), _mm256_fnmadd_ps(a.hi, b.hi, c.hi)};
}
inline Vec Sqrt(Vec a) { return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }
inline Vec Max(Vec a, Vec b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
inline Vec Min(Vec a, Vec b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }

inline Int BitsOf(Vec a) { return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)}; }
inline Vec FromBits(Int a) { return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)}; }
inline Vec Abs(Vec a) {
  const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  return {_mm256_and_ps(a.lo, mask), _mm256_and_ps(a.hi, mask)};
}

inline Int ISet(int32_t x) {
  const __m256i v = _mm256_set1_epi32(x);
  return {v, v};
}
inline Int ILoad(const int32_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
}
inline void IStore(int32_t* p, Int a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), a.hi);
}
inline Int IAdd(Int a, Int b) { return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)}; }
inline Int ISub(Int a, Int b) { return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)}; }
inline Int IAnd(Int a, Int b) { return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)}; }
inline Int IOr(Int a, Int b) { return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)}; }
template <int n>
inline Int ShiftLeft(Int a) {
  return {_mm256_slli_epi32(a.lo, n), _mm256_slli_epi32(a.hi, n)};
}
template <int n>
inline Int ShiftRight(Int a) {  // logical
  return {_mm256_srli_epi32(a.lo, n), _mm256_srli_epi32(a.hi, n)};
}
template <int n>
inline Int ShiftRightSigned(Int a) {
  return {_mm256_srai_epi32(a.lo, n), _mm256_srai_epi32(a.hi, n)};
}
inline Int RoundToInt(Vec a) { return {_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)}; }
inline Vec ToFloat(Int a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }

inline Mask Less(Vec a, Vec b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
inline Mask LessEqual(Vec a, Vec b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LE_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LE_OQ)};
}
inline Mask Equal(Vec a, Vec b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_EQ_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_EQ_OQ)};
}
inline Vec Select(Mask m, Vec yes, Vec no) {
  return {_mm256_blendv_ps(no.lo, yes.lo, m.lo), _mm256_blendv_ps(no.hi, yes.hi, m.hi)};
}
inline __m256 LanesInRange8(int begin, int end) {
  return _mm256_castsi256_ps(_mm256_andnot_si256(FirstLanes(begin), FirstLanes(end)));
}
inline Mask LanesInRange(uint32_t begin, uint32_t end) {
  const int b = static_cast<int>(begin), e = static_cast<int>(end);
  return {LanesInRange8(b, e), LanesInRange8(b - 8, e - 8)};
}
inline uint32_t BitsOfMask(Mask m) {
  return static_cast<uint32_t>(_mm256_movemask_ps(m.lo)) | (static_cast<uint32_t>(_mm256_movemask_ps(m.hi)) << 8);
}

inline Vec LoadF16(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
inline Vec LoadBf16(const uint16_t* p) {
  const __m256i lo = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m256i hi = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)));
  return FromBits({_mm256_slli_epi32(lo, 16), _mm256_slli_epi32(hi, 16)});
}
inline void StoreF16(uint16_t* p, Vec a) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.lo, kNearest));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(a.hi, kNearest));
}
inline __m256i Bf16Bits(__m256 a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
}
inline void StoreBf16(uint16_t* p, Vec a) {
  const __m256i packed = _mm256_packus_epi32(Bf16Bits(a.lo), Bf16Bits(a.hi));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}

inline float ReduceAdd(Vec a) {
  const __m256 v8 = _mm256_add_ps(a.lo, a.hi);
  const __m128 v4 = _mm_add_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
  const __m128 v2 = _mm_add_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_add_ss(v2, _mm_movehdup_ps(v2)));
}
inline float ReduceMax(Vec a) {
  const __m256 v8 = _mm256_max_ps(a.lo, a.hi);
  const __m128 v4 = _mm_max_ps(_mm256_castps256_ps128(v8), _mm256_extractf128_ps(v8, 1));
  const __m128 v2 = _mm_max_ps(v4, _mm_movehl_ps(v4, v4));
  return _mm_cvtss_f32(_mm_max_ss(v2, _mm_movehdup_ps(v2)));
}

// The reductions of eight vectors of eight lanes.
template <class Fold>
inline __m256 ReduceEach8(const __m256* v, Fold fold) {
  __m256 pairs[4], quads[2];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    pairs[i] = fold(_mm256_permute2f128_ps(v[i], v[i + 4], 0x20), _mm256_permute2f128_ps(v[i], v[i + 4], 0x31));
  }
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m256 a = pairs[2 * i], b = pairs[2 * i + 1];
    quads[i] = fold(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xee));
  }
  return fold(_mm256_shuffle_ps(quads[0], quads[1], 0x88), _mm256_shuffle_ps(quads[0], quads[1], 0xdd));
}
template <class Fold>
inline Vec ReduceEach(const float* p, Fold fold) {
  __m256 halves[2];
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    __m256 v[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const float* from = p + 128 * half + 16 * i;
      v[i] = fold(_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8));
    }
    halves[half] = ReduceEach8(v, fold);
  }
  return {halves[0], halves[1]};
}
inline Vec ReduceAddEach(const float* p) {
  return ReduceEach(p, [](__m256 a, __m256 b) { return _mm256_add_ps(a, b); });
}
inline Vec ReduceMaxEach(const float* p) {
  return ReduceEach(p, [](__m256 a, __m256 b) { return _mm256_max_ps(a, b); });
}
inline Vec LoadTwice(const float* p) {
  const __m256i low = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3), high = _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7);
  const __m256 all = _mm256_loadu_ps(p);
  return {_mm256_permutevar8x32_ps(all, low), _mm256_permutevar8x32_ps(all, high)};
}
inline Vec SwapNeighbours(Vec a) { return {_mm256_permute_ps(a.lo, 0xb1), _mm256_permute_ps(a.hi, 0xb1)}; }
inline float FmaOne(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

}  // namespace
}  // namespace cachalot::kernels::isa_avx2
