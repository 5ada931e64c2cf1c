#include "sim/serving.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/testing/agent_load.h"

namespace cachalot::sim {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

ServingOptions Short(ServingOptions options) {
  options.warm_up = seconds(100);
  options.measured = seconds(100);
  return options;
}

bool Same(const ServedRequest& a, const ServedRequest& b) {
  return a.client == b.client && a.turn == b.turn && a.arrival == b.arrival && a.first_token == b.first_token &&
         a.finish == b.finish && a.cached_tokens == b.cached_tokens && a.output_tokens == b.output_tokens;
}

TEST(Serving, EqualSeedsGiveEqualReportsAndOthersDiffer) {
  ServingOptions options = Short(AgentLoad(6, true));
  const ServingReport first = Served(options), second = Served(options);
  EXPECT_TRUE(std::ranges::equal(first.requests, second.requests, Same));
  EXPECT_EQ(first.tokens_computed, second.tokens_computed);
  options.seed = 2;
  EXPECT_FALSE(std::ranges::equal(first.requests, Served(options).requests, Same));
}

TEST(Serving, AConversationGoesOnFromItsOwnKv) {
  const ServingReport report = Served(Short(AgentLoad(2, true)));
  ASSERT_GT(report.requests.size(), 30u);
  EXPECT_EQ(report.tokens_recomputed, 0u);
  for (const ServedRequest& request : report.requests) {
    EXPECT_LT(request.arrival, request.first_token);
    EXPECT_LE(request.first_token, request.finish);
    EXPECT_GE(request.cached_tokens, 4096u);
    if (request.turn == 0) continue;
    EXPECT_LE(request.prompt_tokens - request.cached_tokens, 2400u + 1);
  }
}

TEST(Serving, MeasuresInTheMeasuredTimeOnly) {
  const ServingReport report = Served(Short(AgentLoad(3, true)));
  uint64_t generated = 0;
  for (const ServedRequest& request : report.requests) {
    EXPECT_GE(request.arrival, seconds(100));
    EXPECT_LT(request.arrival, seconds(200));
    generated += request.output_tokens;
  }
  EXPECT_NEAR(report.TokensPerSecond(), static_cast<double>(generated) / 100, 10);
  EXPECT_DOUBLE_EQ(report.Goodput(seconds(1000)), static_cast<double>(report.requests.size()) / 100);
  EXPECT_LE(report.Ttft(0.5), report.Ttft(0.99));
}

TEST(Serving, OptionsThatMakeNoSenseAreRefused) {
  ServingOptions options = AgentLoad(6, true);
  options.clients.clients = 0;
  options.clients.turns = {3, 2};
  options.slots = 100;
  options.engine.admission = "perhaps";
  const std::string message = SimulateServing(options).status().message();
  EXPECT_THAT(message, HasSubstr("no clients"));
  EXPECT_THAT(message, HasSubstr("turns is 3 to 2"));
  EXPECT_THAT(message, HasSubstr("context and pool hold 1600"));
  EXPECT_THAT(message, HasSubstr("perhaps"));
}

TEST(ThrashControl, ChangesNothingAtLowLoad) {
  const ServingReport with = Served(Short(AgentLoad(7, true))), without = Served(Short(AgentLoad(7, false)));
  EXPECT_TRUE(std::ranges::equal(with.requests, without.requests, Same));
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
