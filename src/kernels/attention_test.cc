#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/testing/paged_kv.h"
#include "kernels/testing/plain_attention.h"

namespace cachalot::kernels {
namespace {

struct Case {
  AttentionShape shape;
  KvType type = KvType::kF16;
  uint32_t block_tokens = 16;
  uint64_t tokens = 0;  // positions 0 .. tokens - 1
  uint32_t rows = 1;    // the last of them
};

std::string Name(const Case& c) {
  return "heads " + std::to_string(c.shape.heads) + "/" + std::to_string(c.shape.kv_heads) + " x " +
         std::to_string(c.shape.head_dim) + " window " + std::to_string(c.shape.window) + " type " +
         std::to_string(static_cast<int>(c.type)) + " block " + std::to_string(c.block_tokens) + " tokens " +
         std::to_string(c.tokens) + " rows " + std::to_string(c.rows);
}

struct Inputs {
  explicit Inputs(const Case& c)
      : q(TestValues(1, uint64_t{c.rows} * c.shape.heads * c.shape.head_dim)),
        k(TestValues(2, c.tokens * c.shape.kv_heads * c.shape.head_dim)),
        v(TestValues(3, c.tokens * c.shape.kv_heads * c.shape.head_dim)) {}
  std::vector<float> q, k, v;
};

uint64_t FirstVisible(const Case& c) {
  const uint64_t seen = c.tokens - c.rows + 1;
  return c.shape.window != 0 && seen > c.shape.window ? seen - c.shape.window : 0;
}

// All rows, each call of `attend` taking at most `rows_at_once` of them.
std::vector<float> Attend(const KernelTable& table, const Case& c, const Inputs& in, uint32_t rows_at_once) {
  const AttentionKernels kernels = {table.store_kv, table.attend, table.fold_splits};
  PagedKv kv({c.shape, c.type, c.block_tokens, c.tokens, FirstVisible(c)});
  kv.Store(kernels, in.k, in.v);
  const uint64_t width = uint64_t{c.shape.heads} * c.shape.head_dim;
  std::vector<float> out(c.rows * width, -7.0f);
  for (uint32_t row = 0; row < c.rows; row += rows_at_once) {
    const QueryRun run = {in.q.data() + row * width,
                          width,
                          out.data() + row * width,
                          width,
                          c.tokens - c.rows + row,
                          std::min(rows_at_once, c.rows - row),
                          kv.view().pages};
    for (uint32_t g = 0; g < c.shape.kv_heads; ++g) table.attend(c.shape, {&run, 1, g}, kv.view());
  }
  return out;
}

PlainQuery QueryOf(const Case& c, const Inputs& in, uint32_t row, uint32_t head) {
  return {c.shape, c.type, in.q.data() + (uint64_t{row} * c.shape.heads + head) * c.shape.head_dim,
          c.tokens - c.rows + row, head / (c.shape.heads / c.shape.kv_heads)};
}

std::vector<float> Plain(const Case& c, const Inputs& in) {
  std::vector<float> out;
  for (uint32_t row = 0; row < c.rows; ++row) {
    for (uint32_t head = 0; head < c.shape.heads; ++head) {
      const std::vector<float> one = PlainAttention(QueryOf(c, in, row, head), in.k, in.v);
      out.insert(out.end(), one.begin(), one.end());
    }
  }
  return out;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void ExpectTablesEqualPlain(const Case& c) {
  const Inputs in(c);
  const std::vector<float> expected = Plain(c, in);
  for (const KernelTable* table : RunnableTables()) {
    EXPECT_TRUE(SameBits(Attend(*table, c, in, c.rows), expected)) << table->isa << ": " << Name(c);
  }
}

const AttentionShape kShapes[] = {{1, 1, 32}, {3, 1, 64},  {9, 3, 64}, {5, 1, 80}, {14, 2, 64}, {2, 1, 256},
                                  {2, 2, 96}, {1, 1, 128}, {6, 2, 18}, {4, 1, 2},  {1, 1, 512}, {24, 2, 40}};
const KvType kTypes[] = {KvType::kF32, KvType::kF16, KvType::kBF16};
const uint32_t kBlocks[] = {16, 32, 64, 48};
const uint32_t kWindows[] = {0, 16, 512, 37, 1, 300};

TEST(Attention, DecodeEqualsTheDefinitionOnEveryInstructionSet) {
  uint32_t i = 0;
  for (const uint64_t tokens : {1u, 2u, 15u, 16u, 17u, 31u, 255u, 256u, 257u, 600u, 1025u}) {
    for (AttentionShape shape : kShapes) {
      shape.window = kWindows[i % 6];
      ExpectTablesEqualPlain({shape, kTypes[i % 3], kBlocks[(i / 3) % 4], tokens, 1});
      ++i;
    }
  }
}

TEST(Attention, PrefillEqualsTheDefinitionOnEveryInstructionSet) {
  uint32_t i = 0;
  for (const uint64_t tokens : {2u, 16u, 17u, 40u, 257u, 300u}) {
    for (AttentionShape shape : kShapes) {
      shape.window = kWindows[i % 6];
      const uint32_t rows = static_cast<uint32_t>(std::min<uint64_t>(tokens, shape.head_dim > 100 ? 18 : 41));
      ExpectTablesEqualPlain({shape, kTypes[(i / 2) % 3], kBlocks[i % 4], tokens, rows});
      ++i;
    }
  }
}

TEST(Attention, EveryTypeAndWindowAtTheUsualShape) {
  for (const KvType type : kTypes) {
    for (const uint32_t window : kWindows) {
      ExpectTablesEqualPlain({{3, 1, 64, window}, type, 16, 530, 1});
      ExpectTablesEqualPlain({{3, 1, 64, window}, type, 32, 275, 30});
    }
  }
}

TEST(Attention, RowsAtOnceEqualRowsOneByOne) {
  for (const KernelTable* table : RunnableTables()) {
    for (const AttentionShape& shape : {AttentionShape{9, 3, 64, 0}, {5, 1, 80, 100}, {4, 1, 256, 37}, {2, 2, 18, 0}}) {
      const Case c = {shape, KvType::kF16, 16, 299, 131};
      const Inputs in(c);
      const std::vector<float> at_once = Attend(*table, c, in, c.rows);
      for (const uint32_t rows : {1u, 2u, 7u, 16u, 64u}) {
        EXPECT_TRUE(SameBits(Attend(*table, c, in, rows), at_once)) << table->isa << " by " << rows << ": " << Name(c);
      }
    }
  }
}

TEST(Attention, ARunMayBeCutAtAnyRow) {
  const KernelTable& table = *RunnableTables().front();
  for (const uint32_t window : {0u, 21u}) {
    const Case c = {{3, 1, 64, window}, KvType::kBF16, 16, 280, 70};
    const Inputs in(c);
    const std::vector<float> at_once = Attend(table, c, in, c.rows);
    for (uint32_t cut = 1; cut < c.rows; ++cut) {
      EXPECT_TRUE(SameBits(Attend(table, c, in, cut), at_once)) << cut;
    }
  }
}

TEST(Attention, BlockSizeDoesNotChangeBits) {
  for (const KernelTable* table : RunnableTables()) {
    Case c = {{9, 3, 64, 0}, KvType::kF16, 16, 517, 20};
    const Inputs in(c);
    const std::vector<float> expected = Attend(*table, c, in, c.rows);
    for (const uint32_t block_tokens : {32u, 48u, 64u, 256u}) {
      c.block_tokens = block_tokens;
      EXPECT_TRUE(SameBits(Attend(*table, c, in, c.rows), expected)) << table->isa << ": " << Name(c);
    }
  }
}

TEST(Attention, IsCloseToExactArithmetic) {
  const KernelTable& table = *RunnableTables().front();
  for (const KvType type : kTypes) {
    const Case c = {{9, 3, 64, 0}, type, 16, 2000, 3};
    Inputs in(c);
    for (float& x : in.q) x *= 1.5f;
    const std::vector<float> out = Attend(table, c, in, c.rows);
    for (uint32_t row = 0; row < c.rows; ++row) {
      for (uint32_t head = 0; head < 9; ++head) {
        const std::vector<double> exact = ExactAttention(QueryOf(c, in, row, head), in.k, in.v);
        for (uint32_t d = 0; d < 64; ++d) EXPECT_NEAR(out[(row * 9 + head) * 64 + d], exact[d], 5e-6);
      }
    }
  }
}

// Scores chosen through a head of two dimensions: q = (1, 0), so that score t is k[t][0].
class ChosenScores : public ::testing::Test {
 protected:
  static constexpr uint64_t kTokens = 300;
  Case case_ = {{1, 1, 2, 0}, KvType::kF32, 16, kTokens, 1};
  Inputs in_{case_};

  void SetUp() override {
    in_.q = {1.0f, 0.0f};
    for (uint64_t t = 0; t < kTokens; ++t) in_.k[2 * t + 1] = 0.0f;
  }
  void ExpectAll(const std::vector<float>& expected) {
    ASSERT_TRUE(SameBits(Plain(case_, in_), expected));
    for (const KernelTable* table : RunnableTables()) {
      const std::vector<float> out = Attend(*table, case_, in_, 1);
      EXPECT_TRUE(SameBits(out, expected)) << table->isa << ": " << out[0] << ", " << out[1];
    }
  }
};

const float kNan = __builtin_bit_cast(float, 0x7fc00000u);
const float kInf = std::numeric_limits<float>::infinity();

TEST_F(ChosenScores, MinusInfinityWeighsNothing) {
  for (uint64_t t = 0; t < kTokens; ++t) {
    in_.k[2 * t] = -kInf;
    in_.v[2 * t] = in_.v[2 * t + 1] = 1000.0f;
  }
  in_.k[2 * 270] = -3.0e4f;
  in_.v[2 * 270] = 5.0f;
  in_.v[2 * 270 + 1] = -0.25f;
  ExpectAll({5.0f, -0.25f});
}

TEST_F(ChosenScores, OnlyMinusInfinityIsNan) {
  for (uint64_t t = 0; t < kTokens; ++t) in_.k[2 * t] = -kInf;
  ExpectAll({kNan, kNan});
}

TEST_F(ChosenScores, OnePlusInfinityOrNanIsNan) {
  in_.k[2 * 17] = kInf;
  ExpectAll({kNan, kNan});
  in_.k[2 * 17] = -kNan;
  ExpectAll({kNan, kNan});
}

TEST_F(ChosenScores, ANanValueTouchesItsDimensionOnly) {
  for (uint64_t t = 0; t < kTokens; ++t) {
    in_.k[2 * t] = 0.0f;
    in_.v[2 * t] = in_.v[2 * t + 1] = 2.0f;
  }
  in_.v[2 * 100] = __builtin_bit_cast(float, 0xffd12345u);
  ExpectAll({kNan, 2.0f});
}

TEST_F(ChosenScores, HugeDifferencesUnderflowToZeroWeights) {
  for (uint64_t t = 0; t < kTokens; ++t) {
    in_.k[2 * t] = t == 3 ? 3.0e38f : -3.0e38f;
    in_.v[2 * t] = in_.v[2 * t + 1] = t == 3 ? 1.5f : 1e30f;
  }
  ExpectAll({1.5f, 1.5f});
}

TEST_F(ChosenScores, AnInvisibleInfinityInAVisibleTileIsNotSeen) {
  case_.shape.window = 10;
  case_.rows = 30;
  in_.q.assign(60, 0.0f);
  for (uint32_t row = 0; row < 30; ++row) in_.q[2 * row] = 1.0f;
  // Seen by rows at 285..294, not by their neighbours in the same run.
  in_.v[2 * 285] = kInf;
  in_.k[2 * 285] = kNan;
  const std::vector<float> expected = Plain(case_, in_);
  EXPECT_FALSE(std::isnan(expected[2 * 14]));
  EXPECT_TRUE(std::isnan(expected[2 * 15]));
  EXPECT_TRUE(std::isnan(expected[2 * 24]));
  EXPECT_FALSE(std::isnan(expected[2 * 25]));
  for (const KernelTable* table : RunnableTables()) {
    EXPECT_TRUE(SameBits(Attend(*table, case_, in_, case_.rows), expected)) << table->isa;
  }
}

}  // namespace
}  // namespace cachalot::kernels
