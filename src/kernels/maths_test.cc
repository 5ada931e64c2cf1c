#include "kernels/maths.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace cachalot::kernels {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Case {
  std::string name;
  std::vector<double> args;
  double expected;
};

std::vector<Case> ReadCases() {
  std::ifstream file(CACHALOT_SOURCE_DIR "/tests/data/kernels/maths_cases.txt");
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Case c;
    words >> c.name;
    for (std::string word; words >> word;) c.args.push_back(std::strtod(word.c_str(), nullptr));
    c.expected = c.args.back();
    c.args.pop_back();
    cases.push_back(std::move(c));
  }
  return cases;
}

// Distance in representable numbers; for numbers of one sign, or zeros.
template <class Bits, class Float>
double UlpDistance(Float a, Float b) {
  if (a == b) return 0;
  if (std::isnan(a) || std::isnan(b) || std::signbit(a) != std::signbit(b)) return kInfinity;
  const auto x = __builtin_bit_cast(Bits, a), y = __builtin_bit_cast(Bits, b);
  return static_cast<double>(x > y ? x - y : y - x);
}

double ErrorOf(const Case& c) {
  const double x = c.args[0];
  const auto f64 = [&](double y) { return UlpDistance<uint64_t>(y, c.expected); };
  const auto f32 = [&](float y) { return UlpDistance<uint32_t>(y, static_cast<float>(c.expected)); };
  if (c.name == "exp64") return f64(Exp64(x));
  if (c.name == "log64") return f64(Log64(x));
  if (c.name == "pow64") return f64(Pow64(x, c.args[1]));
  if (c.name == "sin64") return f64(SinCos64(x).sin);
  if (c.name == "cos64") return f64(SinCos64(x).cos);
  if (c.name == "exp32") return f32(Exp(static_cast<float>(x)));
  if (c.name == "log32") return f32(Log(static_cast<float>(x)));
  if (c.name == "tanh32") return f32(Tanh(static_cast<float>(x)));
  return kInfinity;
}

TEST(Maths, IsWithinItsStatedErrorOfRecordedValues) {
  const std::map<std::string, double> allowed = {{"exp64", 1}, {"log64", 1}, {"pow64", 2}, {"sin64", 1},
                                                 {"cos64", 1}, {"exp32", 1}, {"log32", 1}, {"tanh32", 2}};
  std::map<std::string, double> worst;
  for (const Case& c : ReadCases()) {
    const double error = ErrorOf(c);
    worst[c.name] = std::max(worst[c.name], error);
    EXPECT_LE(error, allowed.at(c.name)) << c.name << " of " << c.args[0] << (c.args.size() > 1 ? " ..." : "");
  }
  EXPECT_EQ(worst.size(), allowed.size());
  for (const auto& [name, error] : worst) RecordProperty(name + "_ulp", static_cast<int>(error));
}

TEST(Maths, ExpIsAccurateOverItsWholeRange) {
  uint32_t worst = 0;
  // Every 97th float from 0 to the largest argument, both signs.
  for (uint32_t bits = 0; bits <= 0x42b17217u; bits += 97) {
    for (const float x : {__builtin_bit_cast(float, bits), -__builtin_bit_cast(float, bits)}) {
      const auto expected = static_cast<float>(std::exp(static_cast<double>(x)));
      if (expected < 0x1p-126f) continue;
      const double error = UlpDistance<uint32_t>(Exp(x), expected);
      worst = std::max(worst, static_cast<uint32_t>(error));
    }
  }
  EXPECT_LE(worst, 1u);
}

TEST(Maths, TanhIsAccurateAndOdd) {
  double worst = 0;
  for (uint32_t bits = 0x30000000u; bits <= 0x41200000u; bits += 97) {
    const float x = __builtin_bit_cast(float, bits);
    const auto expected = static_cast<float>(std::tanh(static_cast<double>(x)));
    worst = std::max(worst, UlpDistance<uint32_t>(Tanh(x), expected));
    ASSERT_EQ(Tanh(-x), -Tanh(x));
  }
  EXPECT_LE(worst, 2);
}

TEST(Maths, ExpHasExactEnds) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-0.0f), 1.0f);
  EXPECT_EQ(Exp(-infinity), 0.0f);
  EXPECT_EQ(Exp(infinity), infinity);
  EXPECT_EQ(Exp(-87.34f), 0.0f);
  EXPECT_EQ(Exp(-1e30f), 0.0f);
  EXPECT_GE(Exp(-87.3365f), 0x1p-126f);
  EXPECT_EQ(Exp(88.73f), infinity);
  EXPECT_LT(Exp(88.72f), infinity);
  for (const uint32_t nan : {0x7fc00000u, 0xffc00000u, 0x7fc12345u, 0x7f800001u, 0xffffffffu}) {
    EXPECT_TRUE(std::isnan(Exp(__builtin_bit_cast(float, nan)))) << nan;
    EXPECT_TRUE(std::isnan(Tanh(__builtin_bit_cast(float, nan)))) << nan;
  }
}

TEST(Maths, TanhHasExactEnds) {
  EXPECT_EQ(__builtin_bit_cast(uint32_t, Tanh(0.0f)), 0u);
  EXPECT_EQ(__builtin_bit_cast(uint32_t, Tanh(-0.0f)), 0x80000000u);
  EXPECT_EQ(Tanh(50.0f), 1.0f);
  EXPECT_EQ(Tanh(-std::numeric_limits<float>::infinity()), -1.0f);
}

TEST(Maths, F64FormsHaveTheirLimits) {
  EXPECT_EQ(Exp64(0.0), 1.0);
  EXPECT_EQ(Exp64(kInfinity), kInfinity);
  EXPECT_EQ(Exp64(-kInfinity), 0.0);
  EXPECT_TRUE(std::isnan(Exp64(NAN)));
  EXPECT_EQ(Log64(1.0), 0.0);
  EXPECT_EQ(Log64(0.0), -kInfinity);
  EXPECT_EQ(Log64(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(Log64(-1.0)));
  EXPECT_EQ(Pow64(10.0, 0.0), 1.0);
  EXPECT_EQ(Pow64(1.0, 5.0), 1.0);
  EXPECT_EQ(Pow64(10.0, 400.0), kInfinity);
  EXPECT_EQ(Pow64(10.0, -400.0), 0.0);
  EXPECT_EQ(Pow64(2.0, 10.0), 1024.0);
  EXPECT_TRUE(std::isnan(SinCos64(kInfinity).sin));
  EXPECT_TRUE(std::isnan(SinCos64(0x1p31).cos));
}

TEST(Maths, ALineOfTheUnitCircleHolds) {
  for (double x = -1000; x < 1000; x += 0.377) {
    const SinCos at = SinCos64(x);
    EXPECT_NEAR(at.sin * at.sin + at.cos * at.cos, 1.0, 4e-16) << x;
  }
}

}  // namespace
}  // namespace cachalot::kernels
