#include <gtest/gtest.h>

#include "sim/block_replay.h"
#include "sim/papers/papers.h"
#include "sim/workload.h"

namespace cachalot::sim {
namespace {

TEST(Mooncake, ShowsWhatAReplayGivesAndFailsOnAnotherTrace) {
  const Trace trace = *MakeWorkload("chat", {.seed = 1, .requests = 2000});
  const auto result = Mooncake({.trace = &trace});
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_LT(result->holding(), result->claims() / 4);
  uint32_t looked_at = 0;
  for (const PaperRow& row : result->rows) {
    const bool lru = row.figure == "lru, 1,000 blocks", fifo = row.figure == "fifo, 10,000 blocks";
    if (!lru && !fifo) continue;
    const auto replayed = ReplayBlocks(
        trace, {.policy = lru ? "lru" : "fifo", .capacity_blocks = lru ? 1000u : 10'000u, .leaves_only = lru});
    EXPECT_EQ(row.ours, replayed->BlockHitRate());
    ++looked_at;
  }
  EXPECT_EQ(looked_at, 2u);
}

TEST(Mooncake, NeedsTheTrace) {
  const auto result = RunPaper(**FindPaper("mooncake"), {});
  EXPECT_EQ(result.status().code(), Code::kInvalid);
  EXPECT_NE(result.status().message().find("--trace"), std::string::npos);
}

}  // namespace
}  // namespace cachalot::sim
