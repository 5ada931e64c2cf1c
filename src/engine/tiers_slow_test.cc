#include <gtest/gtest.h>

#include "engine/testing/tiered_soak.h"

namespace cachalot::engine {
namespace {

TEST(TieredSoakSlow, AHundredThousandOperationsOnAFailingDiskLeaveEveryAnswerAsThatOfTheRequestAlone) {
  uint64_t operations = 0, compared = 0, crashes = 0, loaded_tokens = 0;
  for (uint64_t seed = 1000; operations < 100'000; ++seed) {
    const TieredSoakReport report = RunTieredSoak({.seed = seed, .steps = 2'000});
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    operations += report.operations;
    compared += report.compared;
    crashes += report.crashes;
    loaded_tokens += report.loaded_tokens;
  }
  EXPECT_GT(compared, 20'000u);
  EXPECT_GT(crashes, 400u);
  EXPECT_GT(loaded_tokens, 20'000u);
}

}  // namespace
}  // namespace cachalot::engine
