#include <gtest/gtest.h>

#include "engine/testing/tiered_soak.h"

namespace cachalot::engine {
namespace {

TEST(TieredSoak, WhateverTheDiskDoesNoAnswerChangesAndNothingIsHeld) {
  TieredSoakReport all;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    all += RunTieredSoak(AnyTieredSoak(seed, 500));
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(all.compared, 1000u);
  EXPECT_GT(all.loaded_tokens, 1000u);
  EXPECT_GT(all.failed_loads, 0u);
  EXPECT_GT(all.host_tokens, 0u);
  EXPECT_GT(all.hits_verified, 0u);
  EXPECT_GT(all.suspends_held, 0u);
  EXPECT_GT(all.deletes_held, 0u);
}

}  // namespace
}  // namespace cachalot::engine
