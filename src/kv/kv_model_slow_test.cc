#include <gtest/gtest.h>

#include "base/random.h"
#include "kv/testing/kv_model.h"

namespace cachalot::kv {
namespace {

TEST(KvModelSlow, AMillionRandomOperationsOverRandomGeometriesAgreeWithTheNaiveModel) {
  SplitMix64 random(2026);
  constexpr uint64_t kRuns = 100;
  uint64_t operations = 0;
  for (uint64_t i = 0; i < kRuns; ++i) {
    KvGeometry geometry;
    geometry.block_tokens = static_cast<uint32_t>(16 * (1 + random.Below(3)));
    if (random.Below(3) == 0) geometry.block_tokens = static_cast<uint32_t>(1 + random.Below(9));
    const uint64_t groups = 1 + random.Below(5);
    for (uint64_t g = 0; g < groups; ++g) {
      geometry.windows.push_back(static_cast<uint32_t>(random.Below(3) == 0 ? 0 : 1 + random.Below(150)));
    }
    const uint64_t blocks_of_one = 200 / geometry.block_tokens + 2;
    geometry.slots = static_cast<uint32_t>(groups * blocks_of_one * (1 + random.Below(3)));
    KvModelRun run{.geometry = geometry, .seed = i, .operations = 10'000};
    run.max_step = static_cast<uint32_t>(1 + random.Below(80));
    const KvModelReport report = RunKvModel(run);
    ASSERT_TRUE(report.problems.empty()) << "run " << i << ": " << report.problems[0];
    operations += run.operations;
  }
  EXPECT_GE(operations, 1'000'000u);
}

}  // namespace
}  // namespace cachalot::kv
