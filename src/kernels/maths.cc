#include "kernels/maths.h"

#include <cmath>
#include <cstdint>

namespace cachalot::kernels {
namespace one_lane {
namespace {

// The traits of simd-inl.h that maths-inl.h uses, on a single float.
struct Vec {
  float v;
};
struct Int {
  uint32_t v;
};
struct Mask {
  bool v;
};

inline Vec Zero() { return {0.0f}; }
inline Vec Set(float x) { return {x}; }
inline Vec Add(Vec a, Vec b) { return {a.v + b.v}; }
inline Vec Sub(Vec a, Vec b) { return {a.v - b.v}; }
inline Vec Mul(Vec a, Vec b) { return {a.v * b.v}; }
inline Vec Div(Vec a, Vec b) { return {a.v / b.v}; }
inline Vec Fma(Vec a, Vec b, Vec c) { return {std::fma(a.v, b.v, c.v)}; }
inline Vec Fnma(Vec a, Vec b, Vec c) { return {std::fma(-a.v, b.v, c.v)}; }
inline Vec Max(Vec a, Vec b) { return {a.v > b.v ? a.v : b.v}; }
inline Int BitsOf(Vec a) { return {__builtin_bit_cast(uint32_t, a.v)}; }
inline Vec FromBits(Int a) { return {__builtin_bit_cast(float, a.v)}; }
inline Vec Abs(Vec a) { return FromBits({BitsOf(a).v & 0x7fffffffu}); }
inline Int ISet(int32_t x) { return {static_cast<uint32_t>(x)}; }
inline Int IAdd(Int a, Int b) { return {a.v + b.v}; }
inline Int IAnd(Int a, Int b) { return {a.v & b.v}; }
inline Int IOr(Int a, Int b) { return {a.v | b.v}; }
template <int n>
inline Int ShiftLeft(Int a) {
  return {a.v << n};
}
inline Mask Less(Vec a, Vec b) { return {a.v < b.v}; }
inline Mask Equal(Vec a, Vec b) { return {a.v == b.v}; }
inline Vec Select(Mask m, Vec yes, Vec no) { return m.v ? yes : no; }

}  // namespace

#include "kernels/maths-inl.h"

}  // namespace one_lane

namespace {

constexpr double kInfinity = __builtin_inf();
constexpr double kNan = __builtin_nan("");

// An unevaluated sum of two doubles, |low| <= ulp(high)/2.
struct Pair {
  double high, low;
};

// Exact sum. Requires |a| >= |b| or a == 0.
Pair QuickSum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

Pair Sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

Pair Sum(Pair a, Pair b) {
  const Pair high = Sum(a.high, b.high);
  return QuickSum(high.high, high.low + (a.low + b.low));
}

Pair Product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

Pair Product(Pair a, Pair b) {
  const Pair high = Product(a.high, b.high);
  return QuickSum(high.high, high.low + std::fma(a.high, b.low, a.low * b.high));
}

Pair Quotient(Pair a, Pair b) {
  const double q = a.high / b.high;
  const double rest = std::fma(-q, b.high, a.high) + std::fma(-q, b.low, a.low);
  return QuickSum(q, rest / b.high);
}

constexpr Pair kLn2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};

// 2^n * x for any n that the two steps can reach; one rounding, in the second.
double ScaleByPowerOfTwo(double x, int n) {
  const int first = n / 2;
  const auto power = [](int e) { return __builtin_bit_cast(double, static_cast<uint64_t>(e + 1023) << 52); };
  return x * power(first) * power(n - first);
}

// exp(x.high + x.low): the Taylor series to r^13 on |r| <= ln(2)/2, remainder below 2^-57.
double ExpOfPair(Pair x) {
  if (x.high != x.high) return x.high;
  if (x.high > 710.0) return kInfinity;
  if (x.high < -746.0) return 0.0;
  const double n = std::nearbyint(x.high * 0x1.71547652b82fep+0);
  // n * the first 42 bits of ln 2 is exact.
  constexpr double kHead = 0x1.62e42fefa38p-1;
  constexpr double kTail = 0x1.ef35793c7673p-45;
  const double r_head = std::fma(-n, kHead, x.high);
  const Pair r = Sum(r_head, std::fma(-n, kTail, x.low));
  double q = 0x1.6124613a86d09p-33;                // 1/13!
  q = std::fma(q, r.high, 0x1.1eed8eff8d898p-29);  // 1/12!
  q = std::fma(q, r.high, 0x1.ae64567f544e4p-26);
  q = std::fma(q, r.high, 0x1.27e4fb7789f5cp-22);
  q = std::fma(q, r.high, 0x1.71de3a556c734p-19);
  q = std::fma(q, r.high, 0x1.a01a01a01a01ap-16);
  q = std::fma(q, r.high, 0x1.a01a01a01a01ap-13);
  q = std::fma(q, r.high, 0x1.6c16c16c16c17p-10);
  q = std::fma(q, r.high, 0x1.1111111111111p-7);
  q = std::fma(q, r.high, 0x1.5555555555555p-5);
  q = std::fma(q, r.high, 0x1.5555555555555p-3);
  q = std::fma(q, r.high, 0.5);
  const double small = std::fma(q, r.high * r.high, r.low);
  return ScaleByPowerOfTwo(1.0 + (r.high + small), static_cast<int>(n));
}

// ln(x) for finite x > 0: x = 2^k * m, ln m = 2 atanh((m - 1)/(m + 1)) with its first three terms in pairs.
Pair LogOf(double x) {
  int k = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    k = -54;
  }
  uint64_t bits = __builtin_bit_cast(uint64_t, x);
  // Adding this carries into the exponent exactly when the mantissa is at least that of sqrt(2).
  const uint64_t carried = bits + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
  k += static_cast<int>(carried >> 52) - 1023;
  bits -= ((carried >> 52) - 1023) << 52;
  const double m = __builtin_bit_cast(double, bits);  // in [sqrt(1/2), sqrt(2))
  const double f = m - 1.0;                           // exact
  const Pair s = Quotient({f, 0.0}, Sum(2.0, f));
  const Pair z = Product(s, s);
  double rest = 1.0 / 23;
  for (int odd = 21; odd >= 7; odd -= 2) rest = std::fma(rest, z.high, 1.0 / odd);
  constexpr Pair kThird = {0x1.5555555555555p-2, 0x1.5555555555555p-56};
  constexpr Pair kFifth = {0x1.999999999999ap-3, -0x1.999999999999ap-57};
  Pair series = Sum(kFifth, Product(z, {rest, 0.0}));
  series = Sum(kThird, Product(z, series));
  series = Sum({1.0, 0.0}, Product(z, series));
  const Pair log_m = Product({2 * s.high, 2 * s.low}, series);
  return Sum(Product({static_cast<double>(k), 0.0}, kLn2), log_m);
}

// Taylor series on |r| <= pi/4; `low` is the part of the argument below r.
double SinOf(Pair r) {
  const double z = r.high * r.high;
  double q = 0x1.952c77030ad4ap-49;            // 1/17!
  q = std::fma(q, z, -0x1.ae7f3e733b81fp-41);  // 1/15!
  q = std::fma(q, z, 0x1.6124613a86d09p-33);
  q = std::fma(q, z, -0x1.ae64567f544e4p-26);
  q = std::fma(q, z, 0x1.71de3a556c734p-19);
  q = std::fma(q, z, -0x1.a01a01a01a01ap-13);
  q = std::fma(q, z, 0x1.1111111111111p-7);
  q = std::fma(q, z, -0x1.5555555555555p-3);
  const double cubic = q * (z * r.high);
  return r.high + std::fma(r.low, 1.0 - 0.5 * z, cubic);
}

double CosOf(Pair r) {
  const double z = r.high * r.high;
  double q = 0x1.e542ba4020225p-62;            // 1/20!
  q = std::fma(q, z, -0x1.6827863b97d97p-53);  // 1/18!
  q = std::fma(q, z, 0x1.ae7f3e733b81fp-45);   // 1/16!
  q = std::fma(q, z, -0x1.93974a8c07c9dp-37);
  q = std::fma(q, z, 0x1.1eed8eff8d898p-29);
  q = std::fma(q, z, -0x1.27e4fb7789f5cp-22);
  q = std::fma(q, z, 0x1.a01a01a01a01ap-16);
  q = std::fma(q, z, -0x1.6c16c16c16c17p-10);
  q = std::fma(q, z, 0x1.5555555555555p-5);
  const Pair head = QuickSum(1.0, -0.5 * z);
  const double z_error = std::fma(r.high, r.high, -z);
  return head.high + (head.low + std::fma(q, z * z, std::fma(-r.high, r.low, -0.5 * z_error)));
}

}  // namespace

float Exp(float x) { return one_lane::ExpOf({x}).v; }
float Tanh(float x) { return one_lane::TanhOf({x}).v; }
float Log(float x) { return static_cast<float>(Log64(x)); }

double Exp64(double x) { return ExpOfPair({x, 0.0}); }

double Log64(double x) {
  if (x == 0.0) return -kInfinity;
  if (!(x > 0.0)) return kNan;
  if (x == kInfinity) return x;
  const Pair log = LogOf(x);
  return log.high + log.low;
}

double Pow64(double base, double exponent) {
  if (exponent == 0.0 || base == 1.0) return 1.0;
  if (!(base > 0.0) || base == kInfinity || exponent != exponent) return kNan;
  const double rough = exponent * LogOf(base).high;
  if (!(rough > -746.0 && rough < 710.0)) return rough > 0.0 ? kInfinity : 0.0;
  return ExpOfPair(Product(LogOf(base), {exponent, 0.0}));
}

SinCos SinCos64(double x) {
  if (!(std::fabs(x) <= 0x1p30)) return {kNan, kNan};
  const double n = std::nearbyint(x * 0x1.45f306dc9c883p-1);
  // pi/2 in three parts. x - n*kHead is exact: both are multiples of 2^-52 (or x is below 1 and n is 0 or 1).
  constexpr double kHead = 0x1.921fb54442d18p+0;
  constexpr double kMiddle = 0x1.1a62633145c07p-54;
  constexpr double kTail = -0x1.f1976b7ed8fbcp-110;
  const double head = std::fma(-n, kHead, x);
  const Pair middle = Product(-n, kMiddle);
  Pair r = Sum(head, middle.high);
  r = QuickSum(r.high, r.low + std::fma(-n, kTail, middle.low));
  const double sin = SinOf(r);
  const double cos = CosOf(r);
  switch (static_cast<int64_t>(n) & 3) {
    case 0: return {sin, cos};
    case 1: return {cos, -sin};
    case 2: return {-sin, -cos};
    default: return {-cos, sin};
  }
}

}  // namespace cachalot::kernels
