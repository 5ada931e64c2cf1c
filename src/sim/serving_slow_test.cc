// Thrash control against every fixed limit on running sequences (docs/architecture.md).
#include <algorithm>

#include <gtest/gtest.h>

#include "sim/serving.h"
#include "sim/testing/agent_load.h"

namespace cachalot::sim {
namespace {

using std::chrono::seconds;

struct Load {
  uint32_t agents;
  uint64_t seed;
};
class ThrashSweep : public testing::TestWithParam<Load> {};

TEST_P(ThrashSweep, DoesBetterThanAnyFixedLimit) {
  ServingOptions options = AgentLoad(GetParam().agents, true);
  options.seed = GetParam().seed;
  options.measured = seconds(1200);
  const ServingReport with = Served(options);
  options.engine.thrash_control = false;
  const ServingReport without = Served(options);
  double best_goodput = 0, best_tokens = 0;
  for (const uint32_t limit : {2, 4, 6, 7, 8, 9, 10, 12, 64}) {
    options.engine.max_sequences = limit;
    const ServingReport fixed = Served(options);
    best_goodput = std::max(best_goodput, fixed.Goodput(seconds(10)));
    best_tokens = std::max(best_tokens, fixed.TokensPerSecond());
  }
  const auto show = [](const char* name, const ServingReport& r) {
    printf(
        "%-8s TTFT mean %.2f p50 %.2f p90 %.2f p99 %.1f max %.1f s, goodput %.2f/s, %.0f tokens/s, recomputed %.3f\n",
        name, MeanTtft(r), ToSeconds(r.Ttft(.5)), ToSeconds(r.Ttft(.9)), ToSeconds(r.Ttft(.99)), ToSeconds(r.Ttft(1)),
        r.Goodput(seconds(10)), r.TokensPerSecond(), r.RecomputedShare());
  };
  show("control", with);
  show("off", without);
  printf("best fixed limit: goodput %.2f/s, %.0f tokens/s\n", best_goodput, best_tokens);
  EXPECT_GE(with.Goodput(seconds(10)), 0.9 * best_goodput);
  EXPECT_GE(with.TokensPerSecond(), 0.9 * best_tokens);
  EXPECT_LE(with.RecomputedShare(), 0.12);
  EXPECT_LE(MeanTtft(with), 0.5 * MeanTtft(without));
  EXPECT_LE(with.Ttft(0.9), 0.1 * without.Ttft(0.9));
}

INSTANTIATE_TEST_SUITE_P(WorkingSets, ThrashSweep, testing::Values(Load{22, 1}, Load{22, 2}, Load{44, 1}, Load{44, 2}));

}  // namespace
}  // namespace cachalot::sim
