// The default eviction policy beside LRU.
#include <string>

#include <gtest/gtest.h>

#include "kv/eviction.h"
#include "sim/block_replay.h"
#include "sim/workload.h"

namespace cachalot::sim {
namespace {

TEST(BlockReplay, TheDefaultIsNowhereMuchWorseThanLruAndResistsScans) {
  const std::string cost(kv::EvictionPolicyNames().front());
  for (const std::string_view name : WorkloadNames()) {
    const Trace trace = MakeWorkload(name, {.seed = 1, .requests = 6000}).value();
    for (const uint64_t capacity : {300u, 1000u, 3000u, 10000u}) {
      const double ours = ReplayBlocks(trace, {.policy = cost, .capacity_blocks = capacity})->BlockHitRate();
      const double lru = ReplayBlocks(trace, {.policy = "lru", .capacity_blocks = capacity})->BlockHitRate();
      EXPECT_GE(ours, lru - 0.01) << name << ", " << capacity << " blocks";
      if (name == "scan" && capacity == 1000) {
        EXPECT_GE(ours, lru + 0.03);
      }
    }
  }
}

}  // namespace
}  // namespace cachalot::sim
