#include "kernels/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/dequantize.h"
#include "kernels/half-inl.h"
#include "kernels/kernel_table.h"
#include "kernels/packed_matrix.h"
#include "kernels/quant_blocks.h"
#include "kernels/testing/random_blocks.h"

namespace cachalot::kernels {
namespace {

using testing::Fill;
using testing::kAllTypes;
using testing::RandomBlocks;
using testing::RandomFloats;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// Same bits, or both NaN.
bool Same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

void ExpectSame(const std::vector<float>& got, const std::vector<float>& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(Same(got[i], want[i])) << what << ", element " << i << ": " << got[i] << " instead of " << want[i];
  }
}

// --- The arithmetic, written down once more.

struct QuantisedCopy {
  std::vector<int8_t> values;
  std::vector<float> scales;
  std::vector<int32_t> sums;

  QuantisedCopy(uint64_t rows, uint64_t columns)
      : values(rows * columns), scales(rows * columns / kGroup), sums(rows * columns / kGroup) {}
  QuantisedRows view() { return {values.data(), scales.data(), sums.data()}; }
};

QuantisedCopy LiteralQuantizeRows(const std::vector<float>& x, uint64_t rows, uint64_t columns) {
  QuantisedCopy out(rows, columns);
  for (uint64_t group = 0; group < rows * columns / kGroup; ++group) {
    const float* in = x.data() + group * kGroup;
    float amax = 0;
    bool finite = true;
    for (uint32_t i = 0; i < kGroup; ++i) {
      finite = finite && std::isfinite(in[i]);
      amax = std::max(amax, std::fabs(in[i]));
    }
    int sums[2] = {0, 0};
    if (finite && amax >= 0x1p-100f) {
      out.scales[group] = amax / 127.0f;
      const float inverse = 127.0f / amax;
      for (uint32_t i = 0; i < kGroup; ++i) {
        const int q = static_cast<int>(std::nearbyint(in[i] * inverse));
        EXPECT_LE(std::abs(q), 127);
        out.values[group * kGroup + i] = static_cast<int8_t>(q);
        sums[i / kHalfGroup] += q;
      }
    } else if (!finite) {
      out.scales[group] = kNaN;
    }
    out.sums[group] =
        static_cast<int32_t>(static_cast<uint32_t>(sums[1]) << 16 | (static_cast<uint32_t>(sums[0]) & 0xffff));
  }
  return out;
}

// One output of a quantised format.
float LiteralQuantDot(TensorType type, const std::byte* row, const int8_t* values, const float* scales,
                      uint64_t columns) {
  const QuantFormat format = FormatOf(type);
  float acc = 0;
  for (uint64_t g = 0; g < columns / kGroup; ++g) {
    const QuantGroup group = ReadGroup(type, row, g);
    const int8_t* q = values + g * kGroup;
    int64_t isum = 0, xsum = 0;
    for (uint32_t i = 0; i < kGroup; ++i) {
      int64_t weight = int64_t{group.weights[i]} - format.offset;
      if (format.scales == ScaleKind::kSuperPair) weight *= static_cast<int8_t>(group.scales[i / kHalfGroup]);
      isum += weight * q[i];
      xsum += q[i];
    }
    float d = FloatOfF16(group.d);
    if (format.scales == ScaleKind::kSuperMin) d *= static_cast<float>(group.scales[0]);
    acc = std::fma(static_cast<float>(isum), d * scales[g], acc);
    if (!HasMin(format.scales)) continue;
    float m = FloatOfF16(group.min);
    if (format.scales == ScaleKind::kSuperMin) m = -(m * static_cast<float>(group.scales[1]));
    acc = std::fma(static_cast<float>(xsum), m * scales[g], acc);
  }
  return acc;
}

// --- Running the kernels.

struct Case {
  TensorType type;
  uint32_t rows, columns;  // of the matrix
  uint32_t m;
  Fill fill = Fill::kModel;
};

std::string NameOf(const Case& c) {
  return std::string(InfoOf(c.type).name) + " [" + std::to_string(c.rows) + ", " + std::to_string(c.columns) + "], m " +
         std::to_string(c.m);
}

class Problem {
 public:
  explicit Problem(const Case& c) : Problem(c, RandomFloats(uint64_t{c.m} * c.columns, c.columns + c.m)) {}
  Problem(const Case& c, std::vector<float> x)
      : case_(c),
        x_(std::move(x)),
        bytes_(RandomBlocks(c.type, uint64_t{c.rows} * c.columns, c.rows + c.columns, c.fill)),
        quantised_(c.m, c.columns - c.columns % kGroup) {
    ThreadPool pool(1);
    auto packed = PackedMatrix::Pack(c.type, c.rows, c.columns, bytes_, pool);
    EXPECT_TRUE(packed.ok());
    matrix_ = std::move(*packed);
    if (matrix_.takes_quantised()) quantised_ = LiteralQuantizeRows(x_, c.m, c.columns);
  }

  std::vector<float> Run(const KernelTable& table) { return RunRange(table, 0, matrix_.panels()); }
  // Elements outside the range are kUntouched.
  std::vector<float> RunRange(const KernelTable& table, uint32_t panel_begin, uint32_t panel_end) {
    std::vector<float> out(uint64_t{case_.m} * Stride(), kUntouched);
    table.matmul(matrix_.view(), Rows(0, case_.m), panel_begin, panel_end, out.data(), Stride());
    return out;
  }
  void RunInto(const KernelTable& table, uint32_t m, float* out) {
    table.matmul(matrix_.view(), Rows(0, m), 0, matrix_.panels(), out, Stride());
  }
  // Row by row.
  std::vector<float> RunSingly(const KernelTable& table) {
    std::vector<float> out(uint64_t{case_.m} * Stride(), kUntouched);
    for (uint32_t r = 0; r < case_.m; ++r) {
      table.matmul(matrix_.view(), Rows(r, 1), 0, matrix_.panels(), out.data() + r * Stride(), Stride());
    }
    return out;
  }

  std::vector<float> Literal() {
    std::vector<float> out(uint64_t{case_.m} * Stride(), kUntouched);
    const TensorTypeInfo& info = InfoOf(case_.type);
    const uint64_t row_bytes = uint64_t{case_.columns} / info.block_values * info.block_bytes;
    std::vector<float> row(case_.columns);
    for (uint32_t n = 0; n < case_.rows; ++n) {
      Dequantize(case_.type, bytes_.data() + n * row_bytes, case_.columns, row.data());
      for (uint32_t r = 0; r < case_.m; ++r) {
        float& result = out[r * Stride() + n];
        if (matrix_.takes_quantised()) {
          result = LiteralQuantDot(case_.type, bytes_.data() + n * row_bytes,
                                   quantised_.values.data() + uint64_t{r} * case_.columns,
                                   quantised_.scales.data() + uint64_t{r} * case_.columns / kGroup, case_.columns);
        } else {
          result = 0;
          for (uint32_t k = 0; k < case_.columns; ++k) {
            result = std::fma(row[k], x_[uint64_t{r} * case_.columns + k], result);
          }
        }
      }
    }
    return out;
  }

  // What the true product may differ by: the rounding of x, and some of each accumulation step.
  void ExpectCloseToTrueProduct(const std::vector<float>& got) {
    std::vector<float> w(uint64_t{case_.rows} * case_.columns);
    Dequantize(case_.type, bytes_.data(), w.size(), w.data());
    for (uint32_t r = 0; r < case_.m; ++r) {
      for (uint32_t n = 0; n < case_.rows; ++n) {
        double sum = 0, magnitude = 0, rounding = 0;
        for (uint32_t k = 0; k < case_.columns; ++k) {
          const double weight = w[uint64_t{n} * case_.columns + k], value = x_[uint64_t{r} * case_.columns + k];
          sum += weight * value;
          magnitude += std::fabs(weight * value);
          if (matrix_.takes_quantised()) {
            rounding += std::fabs(weight) * quantised_.scales[(uint64_t{r} * case_.columns + k) / kGroup] * 0.5001;
          }
        }
        ASSERT_NEAR(got[r * Stride() + n], sum, rounding + magnitude * 1e-5 + 1e-6) << NameOf(case_);
      }
    }
  }

  uint64_t Stride() const { return case_.rows + 3; }
  uint32_t panels() const { return matrix_.panels(); }
  static constexpr float kUntouched = -12345.5f;

 private:
  Activations Rows(uint32_t first, uint32_t count) {
    const uint64_t at = uint64_t{first} * case_.columns;
    Activations out;
    out.f32 = x_.data() + at;
    out.quantised = {quantised_.values.data() + at, quantised_.scales.data() + at / kGroup,
                     quantised_.sums.data() + at / kGroup};
    out.rows = count;
    return out;
  }

  Case case_;
  std::vector<float> x_;
  std::vector<std::byte> bytes_;
  PackedMatrix matrix_;
  QuantisedCopy quantised_;
};

std::vector<uint32_t> ColumnsFor(TensorType type) {
  switch (InfoOf(type).block_values) {
    case 1: return {1, 3, 64, 400, 600};
    case 32: return {32, 64, 96, 1088};
    default: return {256, 512, 1280};
  }
}

void ExpectEveryTableEqualsLiteral(const Case& c) {
  Problem problem(c);
  const std::vector<float> want = problem.Literal();
  for (const KernelTable* table : RunnableTables()) {
    ExpectSame(problem.Run(*table), want, NameOf(c) + " on " + table->isa);
  }
}

TEST(Matmul, EveryTableEqualsTheWrittenArithmeticOnOddShapes) {
  for (const TensorType type : kAllTypes) {
    for (const uint32_t columns : ColumnsFor(type)) {
      for (const uint32_t rows : {1u, 15u, 16u, 17u, 85u}) {
        for (const uint32_t m : {1u, 2u, 3u, 5u, 16u, 33u}) {
          ExpectEveryTableEqualsLiteral({type, rows, columns, m});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Matmul, EveryTableEqualsTheWrittenArithmeticOnEveryRowCount) {
  for (const TensorType type : kAllTypes) {
    const uint32_t columns = InfoOf(type).block_values == 1 ? 70 : 256;
    for (uint32_t m = 1; m <= 20; ++m) ExpectEveryTableEqualsLiteral({type, 33, columns, m});
    if (HasFatalFailure()) return;
  }
}

TEST(Matmul, EveryTableEqualsTheWrittenArithmeticOnManyRows) {
  for (const TensorType type : kAllTypes) {
    ExpectEveryTableEqualsLiteral({type, 1003, InfoOf(type).block_values == 1 ? 100u : 256u, 7});
    if (HasFatalFailure()) return;
  }
}

TEST(Matmul, GroupDotsStayExactWhereAllWeightsAreExtreme) {
  for (const TensorType type : kAllTypes) {
    if (InfoOf(type).block_values == 1) continue;
    for (const Fill fill : {Fill::kLeast, Fill::kGreatest}) {
      for (const float sign : {1.0f, -1.0f}) {
        for (const uint32_t m : {1u, 4u, 9u}) {
          const Case c{type, 20, 512, m, fill};
          // Every value of x becomes +-127.
          Problem problem(c, std::vector<float>(uint64_t{m} * 512, 3.0f * sign));
          const std::vector<float> want = problem.Literal();
          for (const KernelTable* table : RunnableTables()) {
            ExpectSame(problem.Run(*table), want, NameOf(c) + " on " + table->isa);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST(Matmul, NoRowsOfXWriteNothing) {
  for (const TensorType type : kAllTypes) {
    Problem problem(Case{type, 20, 256, 0});
    for (const KernelTable* table : RunnableTables()) {
      std::vector<float> out(64, Problem::kUntouched);
      problem.RunInto(*table, 0, out.data());
      EXPECT_EQ(out, std::vector<float>(64, Problem::kUntouched)) << InfoOf(type).name << " on " << table->isa;
    }
  }
}

TEST(Matmul, RowsAloneEqualRowsTogether) {
  for (const TensorType type : kAllTypes) {
    for (const uint32_t columns : ColumnsFor(type)) {
      Problem problem(Case{type, 40, columns, 19});
      for (const KernelTable* table : RunnableTables()) {
        ExpectSame(problem.RunSingly(*table), problem.Run(*table),
                   InfoOf(type).name + std::string(" on ") + table->isa);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Matmul, PanelRangesWriteTheirRowsOnlyAndTheSameBits) {
  for (const TensorType type : kAllTypes) {
    for (const uint32_t m : {1u, 2u, 3u, 4u, 6u}) {
      const Case c{type, 117, 512, m};
      Problem problem(c);
      for (const KernelTable* table : RunnableTables()) {
        const std::vector<float> whole = problem.Run(*table);
        for (uint32_t begin = 0; begin <= problem.panels(); ++begin) {
          for (uint32_t end = begin; end <= problem.panels(); end += 1 + end % 3) {
            std::vector<float> want = whole;
            for (size_t i = 0; i < want.size(); ++i) {
              const uint64_t panel = i % problem.Stride() / kPanelRows;
              if (panel < begin || panel >= end) want[i] = Problem::kUntouched;
            }
            ExpectSame(problem.RunRange(*table, begin, end), want, NameOf(c) + " on " + table->isa);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST(Matmul, IsCloseToTheProductInDouble) {
  for (const TensorType type : kAllTypes) {
    Problem problem(Case{type, 50, InfoOf(type).block_values == 1 ? 700u : 1024u, 5});
    problem.ExpectCloseToTrueProduct(problem.Run(*RunnableTables().front()));
    if (HasFatalFailure()) return;
  }
}

TEST(Matmul, RowsThatAreNotFiniteGiveNaNAndSpareTheOthers) {
  for (const TensorType type : kAllTypes) {
    const uint32_t columns = 512;
    std::vector<float> x = RandomFloats(uint64_t{6} * columns, 9);
    x[1 * columns + 40] = kNaN;
    x[4 * columns + 300] = kInf;
    const Case c{type, 18, columns, 6};
    Problem problem(c, x);
    for (const KernelTable* table : RunnableTables()) {
      const std::vector<float> got = problem.Run(*table);
      ExpectSame(got, problem.Literal(), NameOf(c) + " on " + table->isa);
      for (uint32_t r = 0; r < 6; ++r) {
        EXPECT_EQ(std::isfinite(got[r * problem.Stride()]), r != 1 && r != 4) << NameOf(c) << ", row " << r;
      }
    }
  }
}

// --- quantize_rows

void ExpectQuantisesLiterally(const std::vector<float>& x, uint32_t rows, uint32_t columns) {
  const QuantisedCopy want = LiteralQuantizeRows(x, rows, columns);
  for (const KernelTable* table : RunnableTables()) {
    QuantisedCopy got(rows, columns);
    table->quantize_rows(x.data(), rows, columns, got.view());
    EXPECT_EQ(got.values, want.values) << table->isa;
    EXPECT_EQ(got.sums, want.sums) << table->isa;
    ExpectSame(got.scales, want.scales, table->isa);
  }
}

TEST(QuantizeRows, EqualsTheWrittenRule) { ExpectQuantisesLiterally(RandomFloats(7 * 1056, 3), 7, 1056); }

TEST(QuantizeRows, RoundsTiesToEven) {
  std::vector<float> x(32, 0.0f);
  x[0] = 127;
  x[1] = 0.5f;
  x[2] = 1.5f;
  x[3] = -2.5f;
  QuantisedCopy got(1, 32);
  for (const KernelTable* table : RunnableTables()) {
    table->quantize_rows(x.data(), 1, 32, got.view());
    EXPECT_EQ(std::vector<int8_t>(got.values.begin(), got.values.begin() + 4), (std::vector<int8_t>{127, 0, 2, -2}));
    EXPECT_EQ(got.scales[0], 1.0f);
    EXPECT_EQ(got.sums[0], 127);
  }
}

TEST(QuantizeRows, HandlesEveryMagnitude) {
  std::vector<float> x;
  for (int exponent = -149; exponent <= 127; ++exponent) {
    const std::vector<float> group = RandomFloats(32, static_cast<uint64_t>(exponent + 200));
    for (const float value : group) x.push_back(std::ldexp(std::clamp(value / 100, -1.0f, 1.0f), exponent));
  }
  ExpectQuantisesLiterally(x, 1, static_cast<uint32_t>(x.size()));
}

TEST(QuantizeRows, TinyGroupsAreZeroAndGroupsThatAreNotFiniteAreNaN) {
  std::vector<float> x(32 * 7, 1.0f);
  for (int i = 0; i < 32; ++i) x[i] = 0x1.fffffep-101f;
  for (int i = 0; i < 32; ++i) x[32 + i] = i == 5 ? -0x1p-100f : 0.0f;
  x[64 + 31] = kNaN;
  x[96 + 0] = kInf;
  x[128 + 17] = -kInf;
  for (int i = 0; i < 32; ++i) x[160 + i] = -0.0f;
  for (int i = 0; i < 32; ++i) x[192 + i] = i % 2 == 0 ? std::numeric_limits<float>::max() : -1.0f;
  ExpectQuantisesLiterally(x, 1, 32 * 7);
  QuantisedCopy got(1, 32 * 7);
  RunnableTables().front()->quantize_rows(x.data(), 1, 32 * 7, got.view());
  EXPECT_EQ(got.scales[0], 0.0f);
  EXPECT_EQ(got.values[32 + 5], -127);
  for (int group : {2, 3, 4}) {
    EXPECT_TRUE(std::isnan(got.scales[group])) << group;
    EXPECT_EQ(got.sums[group], 0);
    EXPECT_EQ(got.values[32 * group + 1], 0);
  }
  EXPECT_EQ(got.scales[5], 0.0f);
  EXPECT_EQ(got.values[192], 127);
}

}  // namespace
}  // namespace cachalot::kernels
