#include "codec/sample_values.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace cachalot::codec {
namespace {

// As float, of what `type` has stored.
double ValueOf(KvType type, const std::byte* at) {
  uint32_t bits = 0;
  std::memcpy(&bits, at, KvTypeBytes(type));
  if (type == KvType::kF32) return std::bit_cast<float>(bits);
  if (type == KvType::kBF16) return std::bit_cast<float>(bits << 16);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const auto exponent = static_cast<int>(bits >> 10 & 0x1F);
  return exponent == 0 ? 0 : sign * std::ldexp(1024 + (bits & 0x3FF), exponent - 25);
}

TEST(SampleValues, HaveTheMeanAndDeviationOfTheirLawInEveryType) {
  constexpr size_t kValues = 40'000;
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16}) {
    std::vector<std::byte> bytes(kValues * KvTypeBytes(type));
    SplitMix64 random(3);
    FillNormal(random, {.mean = 2, .deviation = 0.5}, type, bytes);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < kValues; ++i) {
      const double value = ValueOf(type, &bytes[i * KvTypeBytes(type)]);
      sum += value;
      squares += (value - 2) * (value - 2);
    }
    EXPECT_NEAR(sum / kValues, 2, 0.02) << KvTypeName(type);
    EXPECT_NEAR(std::sqrt(squares / kValues), 0.5, 0.01) << KvTypeName(type);
  }
}

TEST(SampleValues, WhatHalfPrecisionHasNoNormalNumberForIsZero) {
  for (const double mean : {1e-6, 1e6}) {
    std::vector<std::byte> bytes(2 * 64);
    SplitMix64 random(1);
    FillNormal(random, {.mean = mean, .deviation = 0}, KvType::kF16, bytes);
    for (const std::byte byte : bytes) EXPECT_EQ(byte, std::byte{0}) << mean;
  }
}

}  // namespace
}  // namespace cachalot::codec
