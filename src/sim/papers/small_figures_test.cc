// The figures that take no simulated server: numbers written out here, beside what the papers' rows claim themselves.
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/papers/papers.h"

namespace cachalot::sim {
namespace {

using testing::ElementsAre;

PaperResult RunNamed(std::string_view name, uint64_t seed = 1) {
  auto result = RunPaper(**FindPaper(name), {.seed = seed});
  EXPECT_TRUE(result.ok()) << result.status().message();
  return std::move(result).value();
}

std::vector<double> OursOf(const PaperResult& result) {
  std::vector<double> ours;
  for (const PaperRow& row : result.rows) ours.push_back(row.ours);
  return ours;
}

void ExpectAllHold(const PaperResult& result) {
  for (const PaperRow& row : result.rows) EXPECT_TRUE(row.holds) << row.figure << " is " << row.ours;
}

TEST(LightLlm, PeaksAreThoseOfTheExample) {
  const PaperResult result = RunNamed("lightllm");
  EXPECT_THAT(OursOf(result), ElementsAre(9, 15, 23, 25, 31, 31));
  EXPECT_EQ(result.holding(), 6u);
}

TEST(BlockSize, SmallBlocksReuseMoreAndTokensAll) {
  for (const uint64_t seed : {1, 2, 3}) {
    const PaperResult result = RunNamed("block-size", seed);
    EXPECT_THAT(OursOf(result), ElementsAre(64, 80, 80, 80));
    EXPECT_EQ(result.holding(), 4u);
  }
}

TEST(Survivors, ChanceLeavesFewBlocksEmpty) {
  for (const uint64_t seed : {1, 2, 3}) {
    const PaperResult result = RunNamed("survivors", seed);
    ASSERT_EQ(result.rows.size(), 4u);
    EXPECT_NEAR(result.rows[0].ours, 0.18530, 1e-5);
    EXPECT_NEAR(result.rows[1].ours, 0.18530, 0.004);
    EXPECT_NEAR(result.rows[2].ours, 0.00118, 1e-5);
    EXPECT_NEAR(result.rows[3].ours, 0.00118, 0.0004);
    EXPECT_NE(result.rows[1].ours, result.rows[0].ours);
    ExpectAllHold(result);
  }
}

TEST(Cake, TheFasterTheLoadTheLessIsComputedAndBothAtOnceAreFaster) {
  const PaperResult result = RunNamed("cake");
  ExpectAllHold(result);
  ASSERT_EQ(result.rows.size() % 3, 0u);
  double computed = 0;
  for (size_t i = 0; i < result.rows.size(); i += 3) {
    EXPECT_GT(result.rows[i + 1].ours, computed);
    computed = result.rows[i + 1].ours;
    EXPECT_GT(result.rows[i + 2].ours, 0.4);  // two at once are at best twice as fast
    EXPECT_LT(result.rows[i + 2].ours, 0.95);
  }
}

}  // namespace
}  // namespace cachalot::sim
