#include "kernels/rowops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/maths.h"
#include "kernels/testing/paged_kv.h"

namespace cachalot::kernels {
namespace {

const uint32_t kSizes[] = {1, 2, 7, 15, 16, 17, 31, 32, 33, 48, 64, 80, 576, 1000, 1536, 2047};

// Equal bits, or NaN in both.
::testing::AssertionResult Same(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    const bool equal = __builtin_bit_cast(uint32_t, a[i]) == __builtin_bit_cast(uint32_t, b[i]);
    if (!equal && !(std::isnan(a[i]) && std::isnan(b[i]))) {
      return ::testing::AssertionFailure() << "at " << i << ": " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

// Ordinary values, then every kind of extreme one.
std::vector<float> Extremes(uint64_t seed, uint32_t n, float factor) {
  std::vector<float> x = TestValues(seed, n);
  for (float& value : x) value *= factor;
  const float inf = std::numeric_limits<float>::infinity();
  const float special[] = {0.0f, -0.0f, inf, -inf, NAN, 1e-40f, -1e-42f, 3e38f, -3e38f, 88.7f, -88.8f, 1e-20f, 104.0f};
  for (uint32_t i = 0; i < std::size(special) && 3 * i + 1 < n; ++i)
    x[3 * i + 1] = special[(i + seed) % std::size(special)];
  return x;
}

// Calls run(table, out) for each table with `out` between guards, also in place, and compares with `expected`.
template <class Run>
void ExpectAllTables(const std::vector<float>& expected, const std::vector<float>& in_place_input, Run run) {
  const uint32_t n = static_cast<uint32_t>(expected.size());
  for (const KernelTable* table : RunnableTables()) {
    std::vector<float> out(n + 16, 12345.0f);
    run(*table, static_cast<const float*>(nullptr), out.data());
    EXPECT_TRUE(Same({out.begin(), out.begin() + n}, expected)) << table->isa << " n " << n;
    EXPECT_TRUE(std::all_of(out.begin() + n, out.end(), [](float x) { return x == 12345.0f; })) << table->isa;
    std::vector<float> in_place = in_place_input;
    run(*table, static_cast<const float*>(in_place.data()), in_place.data());
    EXPECT_TRUE(Same(in_place, expected)) << table->isa << " in place, n " << n;
  }
}

TEST(RmsNorm, FollowsItsDefinitionBitForBit) {
  for (const uint32_t n : kSizes) {
    const std::vector<float> x = TestValues(n, n), w = TestValues(n + 1, n);
    std::array<float, 16> lanes{};
    for (uint32_t i = 0; i < n; ++i) lanes[i % 16] = std::fma(x[i], x[i], lanes[i % 16]);
    for (size_t half = 8; half > 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    const float r = 1.0f / std::sqrt(lanes[0] / static_cast<float>(n) + 1e-5f);
    std::vector<float> expected(n);
    for (uint32_t i = 0; i < n; ++i) expected[i] = (x[i] * r) * w[i];
    ExpectAllTables(expected, x, [&](const KernelTable& table, const float* in, float* out) {
      table.rms_norm(in != nullptr ? in : x.data(), w.data(), 1e-5f, n, out);
    });
  }
}

TEST(RmsNorm, IsCloseToExact) {
  const std::vector<float> x = TestValues(3, 2047), w = TestValues(4, 2047);
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  const double r = 1 / std::sqrt(sum / 2047 + 1e-6);
  std::vector<float> out(2047);
  RunnableTables().front()->rms_norm(x.data(), w.data(), 1e-6f, 2047, out.data());
  for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], x[i] * r * w[i], 1e-6);
}

TEST(ElementWise, FollowsItsDefinitionBitForBit) {
  for (const uint32_t n : kSizes) {
    for (const float factor : {1.0f, 30.0f}) {
      const std::vector<float> a = Extremes(n, n, factor), b = TestValues(n + 2, n);
      std::vector<float> sum(n), scaled(n), silu(n), gelu(n);
      for (uint32_t i = 0; i < n; ++i) {
        sum[i] = a[i] + b[i];
        scaled[i] = a[i] * 0.37f;
        silu[i] = (a[i] / (1.0f + Exp(-a[i]))) * b[i];
        const float u = (a[i] * 0.79788456f) * std::fma(a[i] * a[i], 0.044715f, 1.0f);
        gelu[i] = ((0.5f * a[i]) * (1.0f + Tanh(u))) * b[i];
      }
      const auto x = [&](const float* in) { return in != nullptr ? in : a.data(); };
      ExpectAllTables(sum, a,
                      [&](const KernelTable& t, const float* in, float* out) { t.add(x(in), b.data(), n, out); });
      ExpectAllTables(scaled, a,
                      [&](const KernelTable& t, const float* in, float* out) { t.scale(x(in), 0.37f, n, out); });
      ExpectAllTables(silu, a,
                      [&](const KernelTable& t, const float* in, float* out) { t.silu_mul(x(in), b.data(), n, out); });
      ExpectAllTables(gelu, a, [&](const KernelTable& t, const float* in, float* out) {
        t.gelu_tanh_mul(x(in), b.data(), n, out);
      });
    }
  }
}

TEST(ElementWise, ActivationsAreCloseToExact) {
  std::vector<float> x, ones;
  for (float value = -30; value < 30; value += 0.0117f) x.push_back(value);
  ones.assign(x.size(), 1.0f);
  const uint32_t n = static_cast<uint32_t>(x.size());
  std::vector<float> silu(n), gelu(n);
  RunnableTables().front()->silu_mul(x.data(), ones.data(), n, silu.data());
  RunnableTables().front()->gelu_tanh_mul(x.data(), ones.data(), n, gelu.data());
  for (uint32_t i = 0; i < n; ++i) {
    const double v = x[i];
    EXPECT_NEAR(silu[i], v / (1 + std::exp(-v)), 4e-7 * std::max(1.0, std::fabs(v))) << v;
    const double u = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
    EXPECT_NEAR(gelu[i], 0.5 * v * (1 + std::tanh(u)), 4e-7 * std::max(1.0, std::fabs(v))) << v;
  }
}

TEST(Rope, FollowsItsDefinitionBitForBit) {
  for (const uint32_t dims : {2u, 4u, 14u, 16u, 18u, 30u, 32u, 34u, 64u, 80u, 96u, 128u, 256u, 258u}) {
    const uint32_t half = dims / 2;
    const std::vector<float> head = Extremes(dims, dims, 1.0f);
    std::vector<float> c(half), s(half);
    for (uint32_t i = 0; i < half; ++i) {
      const SinCos at = SinCos64(77.0 * Pow64(10000.0, -2.0 * i / dims));
      c[i] = static_cast<float>(at.cos);
      s[i] = static_cast<float>(at.sin);
    }
    std::vector<float> interleaved = head, halves = head;
    const auto rotate = [](float& a, float& b, float cos, float sin) {
      const float x = a, y = b;
      a = std::fma(x, cos, -(y * sin));
      b = std::fma(y, cos, x * sin);
    };
    for (uint32_t i = 0; i < half; ++i) {
      rotate(interleaved[2 * i], interleaved[2 * i + 1], c[i], s[i]);
      rotate(halves[i], halves[half + i], c[i], s[i]);
    }
    for (const KernelTable* table : RunnableTables()) {
      std::vector<float> x = head;
      x.resize(dims + 16, 12345.0f);
      table->rope_interleaved(x.data(), c.data(), s.data(), dims);
      EXPECT_TRUE(Same({x.begin(), x.begin() + dims}, interleaved)) << table->isa << " dims " << dims;
      EXPECT_EQ(x[dims], 12345.0f);
      std::copy(head.begin(), head.end(), x.begin());
      table->rope_halves(x.data(), c.data(), s.data(), dims);
      EXPECT_TRUE(Same({x.begin(), x.begin() + dims}, halves)) << table->isa << " dims " << dims;
      EXPECT_EQ(x[dims], 12345.0f);
    }
  }
}

}  // namespace
}  // namespace cachalot::kernels
