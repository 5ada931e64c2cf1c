#include "sim/serving.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/testing/agent_load.h"

namespace cachalot::sim {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

TEST(Serving, EqualSeedsGiveEqualReportsAndOthersDiffer) {
  ServingOptions options = Short(AgentLoad(6, true));
  const ServingReport first = Served(options), second = Served(options);
  EXPECT_EQ(first.requests, second.requests);
  EXPECT_EQ(first.tokens_computed, second.tokens_computed);
  options.seed = 2;
  EXPECT_NE(first.requests, Served(options).requests);
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

}  // namespace
}  // namespace cachalot::sim
