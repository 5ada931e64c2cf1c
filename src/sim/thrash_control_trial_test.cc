// Thrash control over minutes of an agents' load: what it ends and what it leaves alone.
#include <gtest/gtest.h>

#include "sim/serving.h"
#include "sim/testing/agent_load.h"

namespace cachalot::sim {
namespace {

using std::chrono::seconds;

TEST(ThrashControl, ChangesNothingAtLowLoad) {
  const ServingReport with = Served(Short(AgentLoad(7, true))), without = Served(Short(AgentLoad(7, false)));
  EXPECT_EQ(with.requests, without.requests);
  EXPECT_EQ(with.last.limit_decreases, 0u);
}

TEST(ThrashControl, EndsThrash) {
  ServingOptions options = AgentLoad(22, true);
  options.measured = seconds(200);
  const ServingReport with = Served(options);
  options.engine.thrash_control = false;
  const ServingReport without = Served(options);
  EXPECT_GT(without.RecomputedShare(), 0.7);
  EXPECT_GT(without.last.pressure.some.shares[1], 0.9);
  EXPECT_EQ(without.last.taken_slots_limit, 0u);
  EXPECT_LE(with.RecomputedShare(), 0.1);
  EXPECT_GT(with.last.taken_slots_limit, 0u);
  EXPECT_GE(with.TokensPerSecond(), 2 * without.TokensPerSecond());
  EXPECT_GE(with.Goodput(seconds(10)), 4 * without.Goodput(seconds(10)));
  EXPECT_LE(MeanTtft(with), 0.5 * MeanTtft(without));
  EXPECT_LE(with.Ttft(0.9), without.Ttft(0.9) / 10);
}

TEST(ThrashControl, NobodyWaitsForEver) {
  const ServingReport report = Served(Short(AgentLoad(22, true)));
  EXPECT_LT(report.Ttft(1), seconds(300));
}

TEST(ThrashControl, LeavesThoseAloneForWhomThereWasTime) {
  ServingOptions options = AgentLoad(36, true);
  options.clients.system_tokens = 512;
  options.clients.first = {100, 1500};
  options.clients.next = {30, 300};
  options.clients.output = {100, 400};
  options.clients.turns = {3, 15};
  options.clients.shortest_think = seconds(3);
  options.clients.mean_think = seconds(12);
  options.slots = 4096;
  options.measured = seconds(200);
  const ServingReport report = Served(options);
  EXPECT_GT(report.RecomputedShare(), 0.3);  // more than fits, but the machine is fast enough
  EXPECT_EQ(report.last.limit_decreases, 0u);
  EXPECT_LT(report.Ttft(0.99), seconds(10));
}

}  // namespace
}  // namespace cachalot::sim
