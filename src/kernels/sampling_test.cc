#include "kernels/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/maths.h"
#include "kernels/testing/paged_kv.h"

namespace cachalot::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const uint32_t kSizes[] = {1, 2, 15, 16, 17, 33, 255, 1003, 4095, 4096, 4097, 8192, 8200, 49152, 50257};

uint32_t Bits(float x) { return __builtin_bit_cast(uint32_t, x); }

std::vector<float> TestLogits(uint32_t n) {
  std::vector<float> x = TestValues(n, n);
  for (float& value : x) value = value * 20.0f - 3.0f;
  return x;
}

void ExpectArgmax(const std::vector<float>& x, uint32_t expected) {
  for (const KernelTable* table : RunnableTables()) {
    EXPECT_EQ(table->argmax(x.data(), static_cast<uint32_t>(x.size())), expected) << table->isa << " n " << x.size();
  }
}

TEST(Argmax, FindsTheLargest) {
  for (const uint32_t n : kSizes) {
    std::vector<float> x = TestLogits(n);
    ExpectArgmax(x, static_cast<uint32_t>(std::max_element(x.begin(), x.end()) - x.begin()));
    for (float& value : x) value = -std::fabs(value) - 1.0f;  // below what pads a partial vector
    ExpectArgmax(x, static_cast<uint32_t>(std::max_element(x.begin(), x.end()) - x.begin()));
    x.back() = 0.5f;
    ExpectArgmax(x, n - 1);
  }
}

TEST(Argmax, TiesGoToTheLowestIndex) {
  std::vector<float> x(100, 1.0f);
  ExpectArgmax(x, 0);
  x[57] = x[41] = x[99] = 2.0f;
  ExpectArgmax(x, 41);
  x.assign(40, -1.0f);
  x[20] = -0.0f;
  x[30] = 0.0f;
  ExpectArgmax(x, 20);
  std::swap(x[20], x[30]);
  ExpectArgmax(x, 20);
}

TEST(Argmax, NanNeverWins) {
  std::vector<float> x(37, NAN);
  ExpectArgmax(x, 0);
  x[36] = -kInf;
  ExpectArgmax(x, 36);
  x[5] = -1e30f;
  ExpectArgmax(x, 5);
  x[22] = kInf;
  x[23] = kInf;
  ExpectArgmax(x, 22);
  ExpectArgmax({NAN}, 0);
  ExpectArgmax({-kInf, -kInf, NAN}, 0);
}

// The definition in sampling.h, one operation at a time.
LogSumExp Plain(const std::vector<float>& x) {
  float max = -kInf, sum = 0;
  const auto floor = [](float m) { return m == -kInf ? 0.0f : m; };
  for (size_t begin = 0; begin < x.size(); begin += 4096) {
    const size_t end = std::min(x.size(), begin + 4096);
    float m = -kInf;
    for (size_t i = begin; i < end; ++i) m = x[i] > m ? x[i] : m;
    std::array<float, 16> lanes{};
    for (size_t i = begin; i < end; ++i) lanes[i % 16] += Exp(x[i] - floor(m));
    for (size_t half = 8; half > 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    const float merged = std::max(max, m);
    sum = std::fma(sum, Exp(max - floor(merged)), lanes[0] * Exp(m - floor(merged)));
    max = merged;
  }
  return {max, Log(sum)};
}

void ExpectPlain(const std::vector<float>& x) {
  const LogSumExp expected = Plain(x);
  for (const KernelTable* table : RunnableTables()) {
    const LogSumExp got = table->log_sum_exp(x.data(), static_cast<uint32_t>(x.size()));
    EXPECT_EQ(Bits(got.max), Bits(expected.max)) << table->isa << " n " << x.size();
    if (std::isnan(expected.log_sum)) {
      EXPECT_TRUE(std::isnan(got.log_sum)) << table->isa;
    } else {
      EXPECT_EQ(Bits(got.log_sum), Bits(expected.log_sum)) << table->isa << " n " << x.size();
    }
  }
}

TEST(LogSumExp, FollowsItsDefinitionBitForBit) {
  for (const uint32_t n : kSizes) {
    std::vector<float> x = TestLogits(n);
    ExpectPlain(x);
    std::sort(x.begin(), x.end());
    ExpectPlain(x);
    for (uint32_t i = 0; i < n; i += 3) x[i] = -kInf;
    ExpectPlain(x);
    x[n / 2] = 3e38f;
    x[0] = -3e38f;
    ExpectPlain(x);
  }
}

TEST(LogSumExp, HasItsLimits) {
  ExpectPlain(std::vector<float>(9000, -kInf));
  EXPECT_EQ(Plain(std::vector<float>(9000, -kInf)).log_sum, -kInf);
  std::vector<float> x(9000, -kInf);
  x[8999] = -7.0f;
  ExpectPlain(x);
  EXPECT_EQ(Plain(x).max, -7.0f);
  EXPECT_EQ(Plain(x).log_sum, 0.0f);
  x[4100] = NAN;
  ExpectPlain(x);
  EXPECT_EQ(Plain(x).max, -7.0f);
  EXPECT_TRUE(std::isnan(Plain(x).log_sum));
  x[4100] = kInf;
  ExpectPlain(x);
}

TEST(LogSumExp, IsCloseToExact) {
  const std::vector<float> x = TestLogits(49152);
  double sum = 0;
  const float max = *std::max_element(x.begin(), x.end());
  for (const float value : x) sum += std::exp(static_cast<double>(value) - max);
  const LogSumExp got = RunnableTables().front()->log_sum_exp(x.data(), 49152);
  EXPECT_EQ(got.max, max);
  EXPECT_NEAR(got.log_sum, std::log(sum), 2e-6);
}

TEST(ExpShifted, FollowsItsDefinitionBitForBit) {
  for (const uint32_t n : kSizes) {
    std::vector<float> x = TestLogits(n);
    if (n > 20) {
      x[3] = NAN;
      x[17] = -kInf;
      x[20] = kInf;
    }
    for (const float inverse : {1.0f, 0.7f, 5.0f, 1e-3f, 1e5f}) {
      for (const KernelTable* table : RunnableTables()) {
        std::vector<float> out(n + 16, 12345.0f);
        table->exp_shifted(x.data(), 4.25f, inverse, n, out.data());
        for (uint32_t i = 0; i < n; ++i) {
          const float expected = Exp((x[i] - 4.25f) * inverse);
          if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(out[i]));
          } else {
            ASSERT_EQ(Bits(out[i]), Bits(expected)) << table->isa << " at " << i << " of " << n;
          }
        }
        EXPECT_EQ(out[n], 12345.0f);
      }
    }
  }
}

// The one-lane forms of maths.h equal the vector forms on arguments from the whole range of floats.
TEST(ExpShifted, VectorLanesEqualTheScalarForm) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 65521) {
    x.push_back(__builtin_bit_cast(float, static_cast<uint32_t>(bits)));
  }
  for (const KernelTable* table : RunnableTables()) {
    std::vector<float> out(x.size());
    table->exp_shifted(x.data(), 0.0f, 1.0f, static_cast<uint32_t>(x.size()), out.data());
    for (size_t i = 0; i < x.size(); ++i) {
      const float expected = Exp(x[i]);
      ASSERT_TRUE(Bits(out[i]) == Bits(expected) || (std::isnan(out[i]) && std::isnan(expected))) << table->isa << x[i];
    }
  }
}

}  // namespace
}  // namespace cachalot::kernels
