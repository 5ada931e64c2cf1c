#include "kernels/matmul.h"
#include "kernels/simd_avx2-inl.h"

namespace cachalot::kernels::isa_avx2 {

#include "kernels/simd-inl.h"

namespace {

inline constexpr uint32_t kSlabGroups = 32;  // 16 KiB of weights per panel

struct Bytes {
  __m256i lo, hi;
};

inline constexpr uint32_t kQuantSmallRows = 4;
inline constexpr uint32_t kQuantPanels = 1;
constexpr int QuantRowsOf(ScaleKind) { return 4; }
inline constexpr uint32_t kFloatSmallRows = 4;
inline constexpr uint32_t kFloatRows = 6;
inline constexpr uint32_t kFloatPanels = 1;
constexpr int SmallPanels(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }

inline Bytes LoadBytes(const std::byte* p) {
  const auto* halves = reinterpret_cast<const __m256i*>(p);
  return {_mm256_load_si256(halves), _mm256_load_si256(halves + 1)};
}
inline void StoreBytes(std::byte* p, Bytes b) {
  auto* halves = reinterpret_cast<__m256i*>(p);
  _mm256_store_si256(halves, b.lo);
  _mm256_store_si256(halves + 1, b.hi);
}
inline Bytes LowNibbles(Bytes b) {
  const __m256i mask = _mm256_set1_epi8(15);
  return {_mm256_and_si256(b.lo, mask), _mm256_and_si256(b.hi, mask)};
}
inline Bytes HighNibbles(Bytes b) { return LowNibbles({_mm256_srli_epi16(b.lo, 4), _mm256_srli_epi16(b.hi, 4)}); }
inline Bytes Or(Bytes a, Bytes b) { return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)}; }
template <int position>
inline __m256i MoveToFour(__m256i b) {
  return position < 4 ? _mm256_slli_epi16(b, position < 4 ? 4 - position : 0)
                      : _mm256_srli_epi16(b, position < 4 ? 0 : position - 4);
}
template <int position, int mask>
inline Bytes TopBits(Bytes b) {
  const __m256i wanted = _mm256_set1_epi8(mask << 4);
  return {_mm256_and_si256(MoveToFour<position>(b.lo), wanted), _mm256_and_si256(MoveToFour<position>(b.hi), wanted)};
}
inline __m128i LoadEight(const std::byte* p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)); }
inline Vec LoadU8(const std::byte* p) {
  return ToFloat({_mm256_cvtepu8_epi32(LoadEight(p)), _mm256_cvtepu8_epi32(LoadEight(p + 8))});
}
inline Vec LoadI8(const std::byte* p) {
  return ToFloat({_mm256_cvtepi8_epi32(LoadEight(p)), _mm256_cvtepi8_epi32(LoadEight(p + 8))});
}
inline void StoreInt8(int8_t* p, Int a) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a.lo, a.hi), 0xd8);
  const __m128i low = _mm256_castsi256_si128(words), high = _mm256_extracti128_si256(words, 1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(low, high));
}

inline __m256i PairSums(__m256i words) { return _mm256_madd_epi16(words, _mm256_set1_epi16(1)); }
inline int32_t HalfSums(const int8_t* values) {
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
  const __m256i fours = PairSums(_mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes));
  const __m256i twos = _mm256_hadd_epi32(fours, fours);
  const __m256i ones = _mm256_hadd_epi32(twos, twos);
  const uint32_t low = static_cast<uint32_t>(_mm256_extract_epi32(ones, 0));
  const uint32_t high = static_cast<uint32_t>(_mm256_extract_epi32(ones, 4));
  return static_cast<int32_t>((high << 16) | (low & 0xffffu));
}
// Products of unsigned weights below 64 with values in [-127, 127] are summed in 16 bits. A chunk adds four to a lane;
// this many chunks stay below 2^15. None for 8-bit weights: those are taken as signed, their sign moved to x.
template <class S>
inline constexpr int kChunksPerSum = 32767 / (4 * 127 * ((1 << S::kFormat.bits) - 1));
template <class S>
inline constexpr int kDotBias = kChunksPerSum<S> == 0 ? 128 : 0;

inline __m256i FourOf(const int8_t* x) {
  int32_t four;
  __builtin_memcpy(&four, x, sizeof four);
  return _mm256_set1_epi32(four);
}

// Keeps the chain of sums as written: reassociated, all its terms would be alive at once and spill.
inline void KeepChain(Int& sum) { asm("" : "+x"(sum.lo), "+x"(sum.hi)); }

template <int R>
inline void AddWordStep(const Bytes& weights, const int8_t* x, uint64_t stride, Int (&words)[R]) {
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const __m256i four = FourOf(x + r * stride);
    words[r].lo = _mm256_add_epi16(words[r].lo, _mm256_maddubs_epi16(weights.lo, four));
    words[r].hi = _mm256_add_epi16(words[r].hi, _mm256_maddubs_epi16(weights.hi, four));
    KeepChain(words[r]);
  }
}
// words += 16-bit dots of chunks [chunk, end).
template <class S, int R, int chunk, int end>
inline void AddChunks(const S& w, uint32_t group, const int8_t* x, uint64_t stride, Int (&words)[R]) {
  Bytes even, odd;
  w.template Steps<chunk>(0, group, even, odd);
  AddWordStep(even, x + 8 * chunk, stride, words);
  AddWordStep(odd, x + 8 * chunk + 4, stride, words);
  if constexpr (chunk + 1 < end) AddChunks<S, R, chunk + 1, end>(w, group, x, stride, words);
}

inline __m256i SignedDot(__m256i magnitude, __m256i weights, __m256i four) {
  return PairSums(_mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(four, weights)));
}
template <int R>
inline void AddSignedStep(Bytes biased, const int8_t* x, uint64_t stride, Int (&sum)[R][1]) {
  const __m256i bias = _mm256_set1_epi8(-128);
  const Bytes w{_mm256_xor_si256(biased.lo, bias), _mm256_xor_si256(biased.hi, bias)};
  const Bytes magnitude{_mm256_abs_epi8(w.lo), _mm256_abs_epi8(w.hi)};  // 128 as unsigned
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const __m256i four = FourOf(x + r * stride);
    sum[r][0].lo = _mm256_add_epi32(sum[r][0].lo, SignedDot(magnitude.lo, w.lo, four));
    sum[r][0].hi = _mm256_add_epi32(sum[r][0].hi, SignedDot(magnitude.hi, w.hi, four));
    KeepChain(sum[r][0]);
  }
}

template <class S, int R, int first, int last>
inline void AddDots(const S& w, uint32_t group, const int8_t* x, uint64_t stride, Int (&sum)[R][1]) {
  constexpr int kNext = kChunksPerSum<S> == 0 ? first + 1 : first + kChunksPerSum<S>;
  if constexpr (kChunksPerSum<S> == 0) {
    Bytes even, odd;
    w.template Steps<first>(0, group, even, odd);
    AddSignedStep(even, x + 8 * first, stride, sum);
    AddSignedStep(odd, x + 8 * first + 4, stride, sum);
  } else {
    Int words[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) words[r] = ISet(0);
    AddChunks<S, R, first, (kNext <= last ? kNext : last + 1)>(w, group, x, stride, words);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum[r][0] = IAdd(sum[r][0], {PairSums(words[r].lo), PairSums(words[r].hi)});
  }
  if constexpr (kNext <= last) AddDots<S, R, kNext, last>(w, group, x, stride, sum);
}
template <class S, int R, int P, int first, int last>
inline void Dots(const S& w, uint32_t group, const int8_t* x, uint64_t stride, const int32_t* start,
                 Int (&dots)[R][P]) {
  static_assert(P == 1);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) dots[r][0] = ISet(0);
  AddDots<S, R, first, last>(w, group, x, stride, dots);
  if constexpr (S::kFormat.offset != kDotBias<S>) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) dots[r][0] = IAdd(dots[r][0], ISet(start[r * kSlabGroups]));
  }
}

}  // namespace

#include "kernels/matmul-inl.h"
#include "kernels/matmul_float-inl.h"
#include "kernels/matmul_quant-inl.h"
#include "kernels/matmul_table-inl.h"

}  // namespace cachalot::kernels::isa_avx2

namespace cachalot::kernels {

const MatmulKernels& MatmulAvx2() { return isa_avx2::kMatmul; }

}  // namespace cachalot::kernels
