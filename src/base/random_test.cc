#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace cachalot {
namespace {

// The known-answer vectors published with Random123 for philox4x32, 10 rounds.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(Philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(UniformAt, IsFixedForeverForItsArguments) {
  // From the first vector above: the top 53 bits of 6627e8d5'e169c58d.
  EXPECT_EQ(UniformAt(0, 0, 0), static_cast<double>(0x6627e8d5e169c58d >> 11) * 0x1p-53);
}

TEST(UniformAt, EveryArgumentMattersInAllItsBits) {
  std::set<double> values;
  size_t calls = 0;
  for (int bit = 0; bit < 64; ++bit) {
    values.insert(UniformAt(uint64_t{1} << bit, 0, 0));
    values.insert(UniformAt(0, 0, uint64_t{1} << bit));
    calls += 2;
  }
  for (int bit = 0; bit < 32; ++bit, ++calls) values.insert(UniformAt(0, uint32_t{1} << bit, 0));
  EXPECT_EQ(values.size(), calls);
}

TEST(UniformAt, IsInTheUnitIntervalAndEven) {
  std::vector<int> tenths(10);
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double u = UniformAt(42, 1, static_cast<uint64_t>(i));
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++tenths[static_cast<size_t>(u * 10)];
  }
  double chi_squared = 0;
  for (const int n : tenths) chi_squared += (n - kDraws / 10.0) * (n - kDraws / 10.0) / (kDraws / 10.0);
  EXPECT_LT(chi_squared, 27.9);  // the 0.999 quantile for 9 degrees of freedom
}

// The first outputs for seed 1234567, as the reference implementation prints them.
TEST(SplitMix64, KnownAnswers) {
  SplitMix64 random(1234567);
  EXPECT_EQ(random(), 6457827717110365317u);
  EXPECT_EQ(random(), 3203168211198807973u);
  EXPECT_EQ(random(), 9817491932198370423u);
}

TEST(SplitMix64, BelowStaysBelowAndReachesEveryValue) {
  SplitMix64 random(1);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t value = random.Below(7);
    ASSERT_LT(value, 7u);
    seen.insert(value);
  }
  EXPECT_EQ(seen.size(), 7u);
}

TEST(SplitMix64, ShufflesRanges) {
  std::vector<int> values = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<int> before = values;
  std::shuffle(values.begin(), values.end(), SplitMix64(3));
  EXPECT_NE(values, before);
  EXPECT_TRUE(std::is_permutation(values.begin(), values.end(), before.begin()));
}

}  // namespace
}  // namespace cachalot
