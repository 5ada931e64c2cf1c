#include <gtest/gtest.h>

#include "kv/testing/kv_model.h"

namespace cachalot::kv {
namespace {

TEST(KvModel, HundredThousandRandomOperationsAgreeWithTheNaiveModel) {
  const KvGeometry geometries[] = {
      {.block_tokens = 16, .windows = {0}, .slots = 40},
      {.block_tokens = 16, .windows = {0, 32}, .slots = 64},
      {.block_tokens = 16, .windows = {0, 1, 16, 17, 100}, .slots = 100},
      {.block_tokens = 4, .windows = {6, 9}, .slots = 48},
      {.block_tokens = 32, .windows = {0, 0, 50}, .slots = 30},
  };
  KvModelReport total;
  uint64_t seed = 1;
  for (const KvGeometry& geometry : geometries) {
    const KvModelReport report = RunKvModel({.geometry = geometry, .seed = seed++, .operations = 20'000});
    ASSERT_TRUE(report.problems.empty()) << "seed " << seed - 1 << ": " << report.problems[0];
    EXPECT_GT(report.refusals, 0u) << "the pool was never full with seed " << seed - 1;
    total.commits += report.commits;
    total.rollbacks += report.rollbacks;
    total.copies += report.copies;
    total.dropped_blocks += report.dropped_blocks;
  }
  // The run is worth something only while everything happens in it.
  EXPECT_GT(total.commits, 20'000u);
  EXPECT_GT(total.rollbacks, 5'000u);
  EXPECT_GT(total.copies, 2'000u);
  EXPECT_GT(total.dropped_blocks, 2'000u);
}

}  // namespace
}  // namespace cachalot::kv
