// Scalar conversions between f32 and the 16-bit floats, for files that carry no instruction-set flags.
// Threads:   pure.
// Ownership: none.
// Invariant: equal to F16C and to the vector forms bit by bit: nearest even, overflow to infinity, denormals kept, NaNs
//            quiet with the top of their payload.
// Cost:      about ten integer instructions.
#pragma once

#include <cstdint>

namespace cachalot::kernels {
namespace {

inline uint32_t BitsOfFloat(float x) { return __builtin_bit_cast(uint32_t, x); }
inline float FloatOfBits(uint32_t bits) { return __builtin_bit_cast(float, bits); }

inline float FloatOfF16(uint16_t h) {
  const uint32_t sign = uint32_t{h & 0x8000u} << 16;
  const uint32_t exponent = (h >> 10) & 0x1f;
  const uint32_t mantissa = h & 0x3ffu;
  if (exponent == 0) {  // zero or denormal: mantissa * 2^-24 is exact
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return FloatOfBits(BitsOfFloat(magnitude) | sign);
  }
  if (exponent == 31) {
    const uint32_t quiet = mantissa != 0 ? 0x400000u : 0u;
    return FloatOfBits(sign | 0x7f800000u | quiet | (mantissa << 13));
  }
  return FloatOfBits(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

inline uint16_t F16OfFloat(float x) {
  const uint32_t bits = BitsOfFloat(x);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // >= 65520 rounds to infinity
  if (magnitude < 0x38800000u) {                                               // below 2^-14: a denormal or zero
    // Adding 0.5 leaves the wanted bits, rounded to nearest even, at the bottom of the mantissa.
    const float shifted = FloatOfBits(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (BitsOfFloat(shifted) - 0x3f000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
}

inline float FloatOfBf16(uint16_t h) { return FloatOfBits(uint32_t{h} << 16); }

inline uint16_t Bf16OfFloat(float x) {
  const uint32_t bits = BitsOfFloat(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace
}  // namespace cachalot::kernels
