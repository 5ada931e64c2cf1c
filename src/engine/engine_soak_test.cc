#include <gtest/gtest.h>

#include "engine/testing/soak.h"
#include "kv/eviction.h"

namespace cachalot::engine {
namespace {

class EngineSoak : public testing::TestWithParam<std::tuple<Device, const char*, int>> {};

TEST_P(EngineSoak, EveryAnswerIsThatOfTheRequestAlone) {
  const auto [device, admission, seed] = GetParam();
  const SoakReport report = RunSoak({.device = device,
                                     .admission = admission,
                                     .seed = static_cast<uint64_t>(seed),
                                     .steps = 400,
                                     .prefix_cache = seed != 3});
  EXPECT_GT(report.compared, 100u);
  if (seed == 3) return;
  EXPECT_GT(report.stats.prompt_tokens_cached, 300u);
  EXPECT_GT(report.stats.slots_evicted, 100u);
  EXPECT_GT(report.stats.slots_expired, 5u);
  EXPECT_GT(report.stats.slots_scrubbed, 20u);
  EXPECT_GT(report.stats.pins_whole + report.stats.pins_shortened, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, EngineSoak,
                         testing::Combine(testing::Values(Device::kCpu, Device::kSimLink),
                                          testing::Values("guaranteed", "expected"), testing::Range(0, 4)));

class EngineSoakPolicy : public testing::TestWithParam<std::string_view> {};

TEST_P(EngineSoakPolicy, EveryAnswerIsThatOfTheRequestAlone) {
  const SoakReport report =
      RunSoak({.admission = "expected", .eviction = std::string(GetParam()), .seed = 11, .steps = 400});
  EXPECT_GT(report.compared, 100u);
}

INSTANTIATE_TEST_SUITE_P(Policies, EngineSoakPolicy, testing::ValuesIn(kv::EvictionPolicyNames()));

}  // namespace
}  // namespace cachalot::engine
