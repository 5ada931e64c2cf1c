// Thrash with host memory below the pool: what others evict is loaded again, or computed, and evicted again
// (docs/architecture.md).
#include <gtest/gtest.h>

#include "sim/serving.h"
#include "sim/testing/agent_load.h"

namespace cachalot::sim {
namespace {

using std::chrono::seconds;

TEST(ThrashWithTiers, ControlEndsItAndTheTrafficThatItMakes) {
  ServingOptions options = AgentLoad(22, true);
  options.model.kv.layers = {{.kv_heads = 32'768, .k_dim = 2}};  // 128 KiB per token
  options.tiers.link = exec::LinkSpec{.bytes_per_second = 2.5e9};
  options.tiers.host_blocks = 4 * options.slots;
  const ServingReport with = Served(options);
  options.engine.thrash_control = false;
  const ServingReport without = Served(options);
  const auto show = [](const char* name, const ServingReport& r) {
    printf(
        "%-8s TTFT mean %.2f p50 %.2f p90 %.2f p99 %.1f s, goodput %.2f/s, %.0f tokens/s, recomputed %.3f, "
        "compute share %.3f, %.1f GB up, %.1f GB down\n",
        name, MeanTtft(r), ToSeconds(r.Ttft(.5)), ToSeconds(r.Ttft(.9)), ToSeconds(r.Ttft(.99)), r.Goodput(seconds(10)),
        r.TokensPerSecond(), r.RecomputedShare(), r.ComputeShare(), static_cast<double>(r.moved.to_pool) / 1e9,
        static_cast<double>(r.moved.from_pool) / 1e9);
  };
  show("control", with);
  show("off", without);
  EXPECT_GT(without.RecomputedShare(), 0.5);
  EXPECT_LE(with.RecomputedShare(), 0.1);
  EXPECT_GE(without.moved.to_pool, 5 * with.moved.to_pool);
  EXPECT_LE(without.ComputeShare(), 0.95);
  EXPECT_GE(with.ComputeShare(), 0.98);
  EXPECT_GE(with.TokensPerSecond(), 1.5 * without.TokensPerSecond());
  EXPECT_GE(with.Goodput(seconds(10)), 2 * without.Goodput(seconds(10)));
  EXPECT_LE(with.Ttft(0.9), without.Ttft(0.9) / 10);
}

}  // namespace
}  // namespace cachalot::sim
