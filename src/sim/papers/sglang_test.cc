#include <gtest/gtest.h>

#include "sim/papers/papers.h"

namespace cachalot::sim {
namespace {

TEST(SgLang, DepthFirstComputesTheEdgesOnceAndRandomOrderMore) {
  for (const uint64_t seed : {1, 2, 3, 4}) {
    const auto result = SgLang({.seed = seed});
    ASSERT_TRUE(result.ok()) << result.status().message();
    const auto& rows = result->rows;
    ASSERT_EQ(rows.size(), 7u);
    for (const PaperRow& row : rows) EXPECT_TRUE(row.holds) << seed << " " << row.figure << " is " << row.ours;
    const double edges = *rows[0].paper;
    EXPECT_EQ(rows[0].ours, edges);         // depth-first
    EXPECT_EQ(rows[1].ours, edges);         // longest resident prefix first
    EXPECT_GT(rows[3].ours, 1.5 * edges);   // random
    EXPECT_LT(rows[4].ours, rows[3].ours);  // with a larger cache
    EXPECT_LT(rows[3].ours, rows[6].ours);  // all prompts
  }
}

}  // namespace
}  // namespace cachalot::sim
