#include <gtest/gtest.h>

#include "engine/testing/soak.h"
#include "kv/eviction.h"

namespace cachalot::engine {
namespace {

class EngineSoakSlow : public testing::TestWithParam<std::string_view> {};

TEST_P(EngineSoakSlow, AHundredThousandOperationsLeaveEveryAnswerAsThatOfTheRequestAlone) {
  uint64_t operations = 0, compared = 0;
  for (uint64_t seed = 100; operations < 100'000; ++seed) {
    const SoakReport report = RunSoak({.device = seed % 4 < 2 ? Device::kCpu : Device::kSimLink,
                                       .admission = seed % 3 == 0 ? "guaranteed" : "expected",
                                       .eviction = std::string(GetParam()),
                                       .seed = seed,
                                       .steps = 5'000});
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    operations += report.operations;
    compared += report.compared;
  }
  EXPECT_GT(compared, 10'000u);
}

INSTANTIATE_TEST_SUITE_P(Policies, EngineSoakSlow, testing::ValuesIn(kv::EvictionPolicyNames()));

}  // namespace
}  // namespace cachalot::engine
