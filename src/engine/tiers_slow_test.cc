#include <gtest/gtest.h>

#include "engine/testing/tiered_soak.h"

namespace cachalot::engine {
namespace {

TEST(TieredSoakSlow, AHundredThousandOperationsOnAFailingDiskLeaveEveryAnswerAsThatOfTheRequestAlone) {
  TieredSoakReport all;
  for (uint64_t seed = 1000; all.operations < 150'000; ++seed) {
    all += RunTieredSoak(AnyTieredSoak(seed, 2'000));
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(all.compared, 20'000u);
  EXPECT_GT(all.crashes, 400u);
  EXPECT_GT(all.loaded_tokens, 20'000u);
  EXPECT_GT(all.host_tokens, 10'000u);
  EXPECT_GT(all.hits_verified, 100u);
  EXPECT_GT(all.suspends_held, 100u);
  EXPECT_GT(all.deletes_held, 50u);
}

}  // namespace
}  // namespace cachalot::engine
