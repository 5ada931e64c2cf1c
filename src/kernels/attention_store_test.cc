#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/half-inl.h"
#include "kernels/kernel_table.h"
#include "kernels/testing/paged_kv.h"

namespace cachalot::kernels {
namespace {

uint32_t Bits(float x) { return __builtin_bit_cast(uint32_t, x); }

template <class Cell>
const Cell* Cells(const PageView& view, uint64_t position, uint64_t offset) {
  return reinterpret_cast<const Cell*>(BlockOf(view, position) + offset);
}

struct StoreCase {
  KvType type;
  uint16_t infinity, nan;
  float (*widen)(uint16_t);
};
const StoreCase kStoreCases[] = {{KvType::kF16, 0x7c00, 0x7e00, FloatOfF16},
                                 {KvType::kBF16, 0x7f80, 0x7fc0, FloatOfBf16}};

// Independent of the kernels' conversions: the nearest of the two neighbours in `type`, ties to the even one.
uint16_t NearestByTrial(float x, const StoreCase& c) {
  const auto widen = c.widen;
  const uint16_t infinity = c.infinity;
  if (std::isnan(x)) return c.nan;
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const double magnitude = std::fabs(static_cast<double>(x));
  uint32_t low = 0, high = infinity;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (static_cast<double>(widen(static_cast<uint16_t>(middle))) <= magnitude ? low : high) = middle;
  }
  const double below = widen(static_cast<uint16_t>(low));
  // Infinity stands where the next number of the type would.
  const double above = high < infinity ? static_cast<double>(widen(static_cast<uint16_t>(high)))
                                       : 2 * static_cast<double>(widen(static_cast<uint16_t>(infinity - 1))) -
                                             static_cast<double>(widen(static_cast<uint16_t>(infinity - 2)));
  if (magnitude >= above) return static_cast<uint16_t>(sign | high);
  const double to_low = magnitude - below, to_high = above - magnitude;
  const bool up = to_high < to_low || (to_high == to_low && high % 2 == 0);
  return static_cast<uint16_t>(sign | (up ? high : low));
}

// `values` through store_kv as the V of a one-head token, padded to 512.
std::vector<uint16_t> Stored(const KernelTable& table, KvType type, std::vector<float> values) {
  constexpr uint32_t kDim = 512;
  const size_t count = values.size();
  values.resize((count + kDim - 1) / kDim * kDim, 0.0f);
  PagedKv kv({.shape = {1, 1, kDim, 0}, .type = type, .tokens = 1});
  std::vector<uint16_t> out;
  for (size_t i = 0; i < values.size(); i += kDim) {
    table.store_kv(values.data() + i, values.data() + i, 0, kv.view());
    const uint16_t* cells = Cells<uint16_t>(kv.view(), 0, kv.view().v_offset);
    out.insert(out.end(), cells, cells + kDim);
  }
  out.resize(count);
  return out;
}

std::vector<float> RoundingBoundaries(const StoreCase& c) {
  std::vector<float> values;
  const auto add_around = [&](double x) {
    const float f = static_cast<float>(x);
    for (const float near : {f, std::nextafter(f, 0.0f), std::nextafter(f, INFINITY)}) {
      values.push_back(near);
      values.push_back(-near);
    }
  };
  for (uint16_t bits = 0; bits < c.infinity; ++bits) {
    const double low = c.widen(bits);
    const double high = bits + 1 < c.infinity ? c.widen(static_cast<uint16_t>(bits + 1)) : 2 * low - c.widen(bits - 1);
    add_around(low);
    add_around((low + high) / 2);
  }
  for (const uint32_t bits : {0x7f800000u, 0xff800000u, 0x7f7fffffu, 0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffabcdefu,
                              0x00000001u, 0x807fffffu, 0x00800000u}) {
    values.push_back(FloatOfBits(bits));
  }
  return values;
}

TEST(StoreKv, RoundsToNearestEvenAtEveryBoundary) {
  for (const StoreCase& c : kStoreCases) {
    const std::vector<float> values = RoundingBoundaries(c);
    for (const KernelTable* table : RunnableTables()) {
      const std::vector<uint16_t> stored = Stored(*table, c.type, values);
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(stored[i], NearestByTrial(values[i], c)) << table->isa << " " << Bits(values[i]);
      }
    }
  }
}

TEST(StoreKv, InstructionSetsAgreeOnRandomBits) {
  std::mt19937 random(5);
  std::vector<float> values(1u << 18);
  for (float& x : values) x = FloatOfBits(random());
  for (const StoreCase& c : kStoreCases) {
    const std::vector<uint16_t> expected = Stored(*RunnableTables().back(), c.type, values);
    for (const KernelTable* table : RunnableTables()) {
      EXPECT_EQ(Stored(*table, c.type, values), expected) << table->isa;
    }
  }
}

TEST(StoreKv, KeysLieTransposedAndValuesInRows) {
  const AttentionShape shape = {3, 3, 18, 0};
  for (const KernelTable* table : RunnableTables()) {
    PagedKv kv({.shape = shape, .type = KvType::kF32, .block_tokens = 32, .tokens = 100, .first_kept = 64});
    const std::vector<float> k = TestValues(1, 100 * 54), v = TestValues(2, 100 * 54);
    kv.Store({table->store_kv, table->attend, table->fold_splits}, k, v);
    for (uint64_t t = 64; t < 100; ++t) {
      for (uint64_t head = 0; head < 3; ++head) {
        for (uint64_t d = 0; d < 18; ++d) {
          const float* keys = Cells<float>(kv.view(), t, kv.view().k_offset);
          const float* values = Cells<float>(kv.view(), t, kv.view().v_offset);
          EXPECT_EQ(keys[(head * 18 + d) * 32 + t % 32], k[t * 54 + head * 18 + d]);
          EXPECT_EQ(values[(head * 32 + t % 32) * 18 + d], v[t * 54 + head * 18 + d]);
        }
      }
    }
    // Nothing beyond the token was written.
    EXPECT_EQ(Bits(Cells<float>(kv.view(), 99, kv.view().k_offset)[100 % 32]), 0xffffffffu);
  }
}

// One visible position has weight 1, so its V comes out as it was read.
TEST(Attend, ReadsEverySixteenBitPattern) {
  constexpr uint32_t kDim = 512;
  for (const StoreCase& c : kStoreCases) {
    for (const KernelTable* table : RunnableTables()) {
      PagedKv kv({.shape = {1, 1, kDim, 0}, .type = c.type, .tokens = 1});
      const std::vector<float> zeros(kDim, 0.0f);
      table->store_kv(zeros.data(), zeros.data(), 0, kv.view());
      auto* cells = reinterpret_cast<uint16_t*>(BlockOf(kv.view(), 0) + kv.view().v_offset);
      std::vector<float> out(kDim);
      const QueryRun run = {zeros.data(), kDim, out.data(), kDim, 0, 1, kv.view().pages};
      for (uint32_t first = 0; first < 65536; first += kDim) {
        for (uint32_t i = 0; i < kDim; ++i) cells[i] = static_cast<uint16_t>(first + i);
        table->attend({1, 1, kDim, 0}, {&run, 1}, kv.view());
        for (uint32_t i = 0; i < kDim; ++i) {
          const uint32_t pattern = first + i;
          const uint32_t magnitude = pattern & 0x7fff;
          if (magnitude > c.infinity) {
            ASSERT_EQ(Bits(out[i]), 0x7fc00000u) << table->isa << " " << pattern;
          } else if (c.type == KvType::kBF16) {
            ASSERT_EQ(out[i], FloatOfBits(pattern << 16)) << table->isa << " " << pattern;
          } else {
            const int exponent = static_cast<int>(magnitude >> 10);
            const int mantissa = static_cast<int>(magnitude & 0x3ff);
            double expected = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
            if (exponent == 31) expected = INFINITY;
            ASSERT_EQ(out[i], pattern & 0x8000 ? -expected : expected) << table->isa << " " << pattern;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace cachalot::kernels
