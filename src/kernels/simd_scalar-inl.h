// The vector traits of simd-inl.h in portable C++: the truth that the other instruction sets must equal.
// Threads:   pure.
// Ownership: none.
// Invariant: one IEEE operation per lane; no lane depends on another but in the reductions' fixed tree.
// Cost:      16 scalar operations each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/half-inl.h"

namespace cachalot::kernels::isa_scalar {
namespace {

struct Vec {
  float v[16];
};
struct Int {
  int32_t v[16];
};
struct Mask {
  bool v[16];
};

template <class F>
inline Vec EachLane(F&& f) {
  Vec out;
  for (int i = 0; i < 16; ++i) out.v[i] = f(i);
  return out;
}
template <class F>
inline Int EachInt(F&& f) {
  Int out;
  for (int i = 0; i < 16; ++i) out.v[i] = f(i);
  return out;
}
template <class F>
inline Mask EachMask(F&& f) {
  Mask out;
  for (int i = 0; i < 16; ++i) out.v[i] = f(i);
  return out;
}

inline Vec Zero() { return Vec{}; }
inline Vec Set(float x) {
  return EachLane([&](int) { return x; });
}
inline Vec Load(const float* p) {
  return EachLane([&](int i) { return p[i]; });
}
inline Vec LoadPartial(const float* p, uint32_t n) {
  return EachLane([&](int i) { return static_cast<uint32_t>(i) < n ? p[i] : 0.0f; });
}
inline void Store(float* p, Vec a) {
  for (int i = 0; i < 16; ++i) p[i] = a.v[i];
}
inline void StorePartial(float* p, uint32_t n, Vec a) {
  for (uint32_t i = 0; i < n; ++i) p[i] = a.v[i];
}

inline Vec Add(Vec a, Vec b) {
  return EachLane([&](int i) { return a.v[i] + b.v[i]; });
}
inline Vec Sub(Vec a, Vec b) {
  return EachLane([&](int i) { return a.v[i] - b.v[i]; });
}
inline Vec Mul(Vec a, Vec b) {
  return EachLane([&](int i) { return a.v[i] * b.v[i]; });
}
inline Vec Div(Vec a, Vec b) {
  return EachLane([&](int i) { return a.v[i] / b.v[i]; });
}
inline Vec Fma(Vec a, Vec b, Vec c) {
  return EachLane([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
}
inline Vec Fnma(Vec a, Vec b, Vec c) {
  return EachLane([&](int i) { return __builtin_fmaf(-a.v[i], b.v[i], c.v[i]); });
}
inline Vec Sqrt(Vec a) {
  return EachLane([&](int i) { return __builtin_sqrtf(a.v[i]); });
}
inline Vec Max(Vec a, Vec b) {
  return EachLane([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline Vec Min(Vec a, Vec b) {
  return EachLane([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}

inline Int BitsOf(Vec a) {
  return EachInt([&](int i) { return __builtin_bit_cast(int32_t, a.v[i]); });
}
inline Vec FromBits(Int a) {
  return EachLane([&](int i) { return __builtin_bit_cast(float, a.v[i]); });
}
inline Vec Abs(Vec a) {
  return EachLane([&](int i) { return FloatOfBits(BitsOfFloat(a.v[i]) & 0x7fffffffu); });
}

inline Int ISet(int32_t x) {
  return EachInt([&](int) { return x; });
}
inline Int ILoad(const int32_t* p) {
  return EachInt([&](int i) { return p[i]; });
}
inline void IStore(int32_t* p, Int a) {
  for (int i = 0; i < 16; ++i) p[i] = a.v[i];
}
inline Int IAdd(Int a, Int b) {
  return EachInt([&](int i) { return static_cast<int32_t>(uint32_t(a.v[i]) + uint32_t(b.v[i])); });
}
inline Int ISub(Int a, Int b) {
  return EachInt([&](int i) { return static_cast<int32_t>(uint32_t(a.v[i]) - uint32_t(b.v[i])); });
}
inline Int IAnd(Int a, Int b) {
  return EachInt([&](int i) { return a.v[i] & b.v[i]; });
}
inline Int IOr(Int a, Int b) {
  return EachInt([&](int i) { return a.v[i] | b.v[i]; });
}
template <int n>
inline Int ShiftLeft(Int a) {
  return EachInt([&](int i) { return static_cast<int32_t>(uint32_t(a.v[i]) << n); });
}
template <int n>
inline Int ShiftRight(Int a) {  // logical
  return EachInt([&](int i) { return static_cast<int32_t>(uint32_t(a.v[i]) >> n); });
}
template <int n>
inline Int ShiftRightSigned(Int a) {
  return EachInt([&](int i) { return a.v[i] >> n; });
}
inline Int RoundToInt(Vec a) {
  return EachInt([&](int i) {
    const bool fits = a.v[i] >= -2147483648.0f && a.v[i] < 2147483648.0f;
    return fits ? static_cast<int32_t>(__builtin_lrintf(a.v[i])) : INT32_MIN;
  });
}
inline Vec ToFloat(Int a) {
  return EachLane([&](int i) { return static_cast<float>(a.v[i]); });
}

inline Mask Less(Vec a, Vec b) {
  return EachMask([&](int i) { return a.v[i] < b.v[i]; });
}
inline Mask LessEqual(Vec a, Vec b) {
  return EachMask([&](int i) { return a.v[i] <= b.v[i]; });
}
inline Mask Equal(Vec a, Vec b) {
  return EachMask([&](int i) { return a.v[i] == b.v[i]; });
}
inline Vec Select(Mask m, Vec yes, Vec no) {
  return EachLane([&](int i) { return m.v[i] ? yes.v[i] : no.v[i]; });
}
inline Mask LanesInRange(uint32_t begin, uint32_t end) {
  return EachMask([&](int i) { return static_cast<uint32_t>(i) >= begin && static_cast<uint32_t>(i) < end; });
}
inline uint32_t BitsOfMask(Mask m) {
  uint32_t bits = 0;
  for (int i = 0; i < 16; ++i) bits |= uint32_t{m.v[i]} << i;
  return bits;
}

inline Vec LoadF16(const uint16_t* p) {
  return EachLane([&](int i) { return FloatOfF16(p[i]); });
}
inline Vec LoadBf16(const uint16_t* p) {
  return EachLane([&](int i) { return FloatOfBf16(p[i]); });
}
inline void StoreF16(uint16_t* p, Vec a) {
  for (int i = 0; i < 16; ++i) p[i] = F16OfFloat(a.v[i]);
}
inline void StoreBf16(uint16_t* p, Vec a) {
  for (int i = 0; i < 16; ++i) p[i] = Bf16OfFloat(a.v[i]);
}

template <class F>
inline float ReduceTree(Vec a, F&& f) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) a.v[i] = f(a.v[i], a.v[i + half]);
  }
  return a.v[0];
}
inline float ReduceAdd(Vec a) {
  return ReduceTree(a, [](float x, float y) { return x + y; });
}
inline float ReduceMax(Vec a) {
  return ReduceTree(a, [](float x, float y) { return x > y ? x : y; });
}
inline Vec ReduceAddEach(const float* p) {
  return EachLane([&](int i) { return ReduceAdd(Load(p + 16 * i)); });
}
inline Vec ReduceMaxEach(const float* p) {
  return EachLane([&](int i) { return ReduceMax(Load(p + 16 * i)); });
}
inline Vec LoadTwice(const float* p) {
  return EachLane([&](int i) { return p[i / 2]; });
}
inline Vec SwapNeighbours(Vec a) {
  return EachLane([&](int i) { return a.v[i ^ 1]; });
}
inline float FmaOne(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

}  // namespace
}  // namespace cachalot::kernels::isa_scalar
