#include "cli/bench_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cachalot::cli {
namespace {

using ::testing::HasSubstr;

BenchOptions Options() {
  BenchOptions options;
  options.prefill = {512, 2048};
  options.decode = {64};
  return options;
}

TEST(BenchPlan, MeasuresEveryTestAtEveryPlaceWithEqualSettingsSideBySide) {
  BenchOptions options = Options();
  options.depth = {0, 4096};
  options.threads = {1, 2};
  options.step_rows = {128, 512};
  const Result<std::vector<BenchRow>> rows = PlanBench(options);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  ASSERT_EQ(rows->size(), 2u * 2 * 2 * 3);
  size_t changes = 0;
  for (size_t i = 1; i < rows->size(); ++i) {
    const BenchRow &a = (*rows)[i - 1], &b = (*rows)[i];
    if (a.threads != b.threads || a.step_rows != b.step_rows) ++changes;
  }
  EXPECT_EQ(changes, 3u);
}

TEST(BenchPlan, LengthsOfZeroLeaveATestOut) {
  BenchOptions options = Options();
  options.prefill = {0};
  const Result<std::vector<BenchRow>> rows = PlanBench(options);
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ(rows->front().test, BenchTest::kDecode);
  options.decode = {0};
  EXPECT_THAT(PlanBench(options).status().message(), HasSubstr("nothing to measure"));
}

TEST(BenchPlan, PrefillOfManyIsMeasuredAtDepthZeroOnly) {
  BenchOptions options = Options();
  options.depth = {0, 512};
  options.concurrency = {4};
  const Result<std::vector<BenchRow>> rows = PlanBench(options);
  ASSERT_TRUE(rows.ok());
  for (const BenchRow& row : *rows) EXPECT_TRUE(row.test == BenchTest::kDecode || row.depth == 0);
  EXPECT_EQ(rows->size(), 4u);
}

TEST(BenchPlan, ValuesThatMeasureNothingAreInvalidAndNamed) {
  BenchOptions options = Options();
  options.concurrency = {0};
  EXPECT_THAT(PlanBench(options).status().message(), HasSubstr("--concurrency"));
  options = Options();
  options.step_rows = {0};
  EXPECT_THAT(PlanBench(options).status().message(), HasSubstr("--step-rows"));
  options = Options();
  options.repetitions = 0;
  EXPECT_THAT(PlanBench(options).status().message(), HasSubstr("--repetitions"));
  options = Options();
  options.depth = {100};
  EXPECT_THAT(PlanBench(options).status().message(),
              HasSubstr("--depth 100: expected a multiple of --step-rows (512)"));
}

TEST(BenchPlan, EarlySequencesOutliveThePromptsOfLateOnes) {
  BenchRow row;
  row.test = BenchTest::kDecode;
  row.output = 64;
  row.depth = 1000;
  row.sequences = 16;
  row.step_rows = 512;
  const BenchRequests asked = RequestsOf(row);
  EXPECT_EQ(asked.requests, 16u);
  EXPECT_EQ(asked.choices, 1u);
  EXPECT_GE(asked.max_tokens, 64u + 16 * 2);  // two steps for each prompt
  const KvNeed need = KvNeedOf(row);
  EXPECT_EQ(need.total_tokens, 1000 + asked.max_tokens);
  EXPECT_EQ(need.requests, 16u);
}

TEST(BenchPlan, ASharedPrefixIsOneRequestOfManyChoices) {
  BenchRow row;
  row.test = BenchTest::kDecode;
  row.output = 64;
  row.depth = 4096;
  row.sequences = 16;
  row.shared = true;
  const BenchRequests asked = RequestsOf(row);
  EXPECT_EQ(asked.requests, 1u);
  EXPECT_EQ(asked.choices, 16u);
  EXPECT_EQ(asked.prompt_tokens, 4096u);
}

}  // namespace
}  // namespace cachalot::cli
