#include <gtest/gtest.h>

#include "engine/testing/tiered_soak.h"

namespace cachalot::engine {
namespace {

TEST(TieredSoak, WhateverTheDiskDoesNoAnswerChangesAndNothingIsHeld) {
  TieredSoakReport all;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const TieredSoakReport report = RunTieredSoak({.seed = seed, .steps = 500});
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    all.loaded_tokens += report.loaded_tokens;
    all.failed_loads += report.failed_loads;
    all.compared += report.compared;
  }
  EXPECT_GT(all.compared, 1000u);
  EXPECT_GT(all.loaded_tokens, 1000u);
  EXPECT_GT(all.failed_loads, 0u);
}

}  // namespace
}  // namespace cachalot::engine
