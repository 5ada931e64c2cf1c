#include <gtest/gtest.h>

#include "tier/testing/disk_model.h"

namespace cachalot::tier {
namespace {

struct Mood {
  DiskModelOptions options;
  uint64_t models;  // each begins with an empty disk
  uint64_t steps;   // each
};

// 10^5 operations with over 200 crashes.
TEST(DiskTierSoak, NoWrongByteNoResurrectionNoOverfilling) {
  uint64_t crashes = 0, read = 0, seed = 100;
  const Mood moods[] = {
      {{.limit_bytes = 64 << 20, .chains = 12, .crashes = 0.003}, 30, 1000},  // room for all
      {{.limit_bytes = 2 << 20, .crashes = 0.003, .faults = 0.05}, 1, 35'000},
      {{.limit_bytes = 3 << 20, .crashes = 0.003, .faults = 0.02, .flips = 0.05}, 1, 35'000},
  };
  for (const Mood& mood : moods) {
    for (uint64_t i = 0; i < mood.models; ++i) {
      DiskModelOptions options = mood.options;
      options.seed = ++seed;
      DiskModel model(options);
      for (uint64_t step = 0; step < mood.steps; ++step) {
        model.Step();
        ASSERT_FALSE(HasFailure()) << "seed " << seed;
      }
      crashes += model.crashes();
      read += model.read_blocks();
    }
  }
  EXPECT_GE(crashes, 200u);
  EXPECT_GT(read, 100'000u);
}

}  // namespace
}  // namespace cachalot::tier
