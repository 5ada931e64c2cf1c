// Exp and tanh over the vector traits: the algorithm of maths.h, once for one lane and for sixteen.
// Threads:   pure.
// Ownership: none.
// Invariant: one lane's result depends on that lane alone; a NaN gives a NaN.
// Cost:      18 to 22 vector instructions and, for tanh, a division.
//
// Included inside a namespace that provides the traits of simd-inl.h (maths.cc provides those used here for one lane).

namespace {

constexpr float kLog2E = 0x1.715476p+0f;
constexpr float kLn2High = 0x1.62e400p-1f;  // 15 bits: n * kLn2High is exact for |n| < 2^9
constexpr float kLn2Low = 0x1.7f7d1cp-20f;
constexpr float kRoundToIntegers = 0x1.8p+23f;  // x + this - this rounds to an integer, which is left in the low bits
constexpr float kExpLowest = -0x1.5d589ep+6f;   // exp is denormal below: ln(2^-126) = -87.336544...
constexpr float kExpHighest = 0x1.62e42ep+6f;   // exp exceeds the largest float above: 88.72283...

// exp(x) = 2^n * (1 + r + r*r*q), |r| <= ln(2)/2.
struct ExpParts {
  Vec biased;  // n + kRoundToIntegers
  Vec r, q;
};

// q is the minimax polynomial that keeps the relative error of the whole below 2^-28.
inline ExpParts SplitExp(Vec x) {
  ExpParts parts;
  parts.biased = Fma(x, Set(kLog2E), Set(kRoundToIntegers));
  const Vec n = Sub(parts.biased, Set(kRoundToIntegers));
  parts.r = Fnma(n, Set(kLn2Low), Fnma(n, Set(kLn2High), x));
  Vec q = Fma(Set(0x1.6a23d0p-10f), parts.r, Set(0x1.123a20p-7f));
  q = Fma(q, parts.r, Set(0x1.5558f2p-5f));
  q = Fma(q, parts.r, Set(0x1.555492p-3f));
  parts.q = Fma(q, parts.r, Set(0x1.fffffcp-2f));
  return parts;
}

inline Vec Mantissa(const ExpParts& parts) { return Fma(Fma(parts.q, parts.r, Set(1.0f)), parts.r, Set(1.0f)); }

// 2^n for n in [-127, 127], -127 giving 0.
inline Vec PowerOfTwo(Vec biased) { return FromBits(IAdd(ShiftLeft<23>(BitsOf(biased)), ISet(0x3f800000))); }

inline Vec ExpOf(Vec x) {
  const ExpParts parts = SplitExp(x);
  Vec y = FromBits(IAdd(BitsOf(Mantissa(parts)), ShiftLeft<23>(BitsOf(parts.biased))));
  y = Select(Less(x, Set(kExpLowest)), Zero(), y);
  y = Select(Less(Set(kExpHighest), x), Set(__builtin_inff()), y);
  return Select(Equal(x, x), y, x);
}

// Equal to ExpOf for x <= 0 and NaN; x in (0, 88] also holds.
inline Vec ExpOfNonPositive(Vec x) {
  const ExpParts parts = SplitExp(x);
  return Select(Less(x, Set(kExpLowest)), Zero(), Mul(Mantissa(parts), PowerOfTwo(parts.biased)));
}

// tanh|x| = -e / (e + 2) with e = exp(-2|x|) - 1, which SplitExp gives without cancellation.
inline Vec TanhOf(Vec x) {
  const Vec magnitude = Abs(x);
  const Vec argument = Max(Set(-20.0f), Sub(Zero(), Add(magnitude, magnitude)));
  const ExpParts parts = SplitExp(argument);
  const Vec scale = PowerOfTwo(parts.biased);
  const Vec e = Fma(scale, Fma(Mul(parts.r, parts.r), parts.q, parts.r), Sub(scale, Set(1.0f)));
  const Vec y = Div(Sub(Zero(), e), Add(e, Set(2.0f)));
  return FromBits(IOr(BitsOf(y), IAnd(BitsOf(x), ISet(INT32_MIN))));
}

}  // namespace
