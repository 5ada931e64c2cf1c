#include <gtest/gtest.h>

#include "kv/eviction.h"
#include "kv/testing/prefix_model.h"

namespace cachalot::kv {
namespace {

class PrefixModelSlow : public testing::TestWithParam<std::string_view> {};

// Forks, ends at any moment, steps that fail, a pool that is always full, tenants and hints.
TEST_P(PrefixModelSlow, AHundredThousandRandomOperationsLeaveNothingWrong) {
  constexpr uint64_t kRuns = 20, kOperations = 5'000;
  uint64_t evicted = 0, refused = 0;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    const bool slides = seed % 2 == 0;
    PrefixModelRun run{.geometry = {.block_tokens = seed % 3 == 0 ? 8u : 4u, .windows = {0}, .slots = 30},
                       .seed = seed,
                       .operations = kOperations,
                       .alphabet = seed % 5 == 0 ? 5u : 2u,
                       .salts = 3,
                       .policy = std::string(GetParam()),
                       .hints = true};
    if (slides) {
      run.geometry.windows = {0, 9, 17};
      run.geometry.slots = 75;
    }
    const PrefixModelReport report = RunPrefixModel(run);
    ASSERT_TRUE(report.problems.empty()) << "seed " << seed << ": " << report.problems.front();
    evicted += report.evicted_slots;
    refused += report.refusals;
  }
  EXPECT_GT(evicted, 10'000u);
  EXPECT_GT(refused, 500u);
}

INSTANTIATE_TEST_SUITE_P(Policies, PrefixModelSlow, testing::ValuesIn(EvictionPolicyNames()));

}  // namespace
}  // namespace cachalot::kv
