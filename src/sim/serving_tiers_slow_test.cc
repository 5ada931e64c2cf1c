// Thrash with host memory below the pool: what others evict is loaded again, or computed, and evicted again
// (docs/architecture.md).
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "sim/serving.h"
#include "sim/testing/agent_load.h"

namespace cachalot::sim {
namespace {

using std::chrono::seconds;

// Of each minute.
struct Minute {
  double compute_share = 0;
  double gb_up = 0, gb_down = 0;
};

std::vector<Minute> MinutesOf(const ServingReport& report) {
  std::vector<Minute> minutes;
  for (size_t i = 1; i < report.samples.size(); ++i) {
    const TimeSpent time = report.samples[i].time - report.samples[i - 1].time;
    const BytesMoved moved = report.samples[i].moved - report.samples[i - 1].moved;
    minutes.push_back({ToSeconds(time.compute) / ToSeconds(time.compute + time.transfers),
                       static_cast<double>(moved.to_pool) / 1e9, static_cast<double>(moved.from_pool) / 1e9});
  }
  return minutes;
}

TEST(ThrashWithTiers, ControlEndsItAndTheTrafficThatItMakes) {
  ServingOptions options = AgentLoad(22, true);
  options.model.kv.layers = {{.kv_heads = 32'768, .k_dim = 2}};  // 128 KiB per token
  options.tiers.link = exec::LinkSpec{.bytes_per_second = 2.5e9};
  options.tiers.host_blocks = 4 * options.slots;
  options.sample_every = seconds(60);
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

  // Without control the computing share falls after the first minute and stays low, as what goes down in each minute
  // comes up again in it. With control it recovers.
  const std::vector<Minute> off = MinutesOf(without), on = MinutesOf(with);
  ASSERT_GT(off.size(), 10u);
  ASSERT_GT(on.size(), 10u);
  for (size_t i = 1; i < off.size(); ++i) {
    EXPECT_LT(off[i].compute_share, off[0].compute_share) << i;
    EXPECT_GT(off[i].gb_up, 40) << i;
    EXPECT_GT(off[i].gb_down, off[i].gb_up) << i;
  }
  const auto calm = [&](const Minute& m) { return m.compute_share > on[0].compute_share && m.gb_up < 15; };
  EXPECT_GE(std::count_if(on.begin() + 2, on.end(), calm) * 10, static_cast<ptrdiff_t>(on.size() - 2) * 8);
}

}  // namespace
}  // namespace cachalot::sim
