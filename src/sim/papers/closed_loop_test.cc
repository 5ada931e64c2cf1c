#include "sim/papers/closed_loop.h"

#include <cmath>
#include <string>

#include <gtest/gtest.h>

namespace cachalot::sim {
namespace {

ClosedLoopOptions Options(uint32_t requests, uint32_t concurrency) {
  ClosedLoopOptions options;
  options.model.curve = {0.01, 0, 0, 0, 0};
  options.concurrency = concurrency;
  options.requests.assign(requests, {.prompt_tokens = 20, .output_tokens = 5});
  return options;
}

TEST(ClosedLoop, TheNextComesWhenOneIsDone) {
  ClosedLoopOptions options = Options(7, 2);
  uint32_t most = 0;
  options.on_step = [&](Nanos begun, Nanos ended, const engine::EngineStats& stats) {
    most = std::max(most, stats.running_sequences + stats.waiting_requests);
    EXPECT_LE(begun, ended);
  };
  const auto report = ServeClosedLoop(options);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(most, 2u);
  EXPECT_EQ(report->output_tokens, 35u);
  EXPECT_EQ(report->ttft.count(), 7u);
  EXPECT_EQ(report->itl.count(), 28u);
  EXPECT_NEAR(ToSeconds(report->itl.Quantile(0.5)), 0.01, 1e-4);
  EXPECT_GE(report->duration, std::chrono::milliseconds(4 * 5 * 10));  // four rounds of two
}

TEST(ClosedLoop, WhatCanNotBeServedIsRefusedInWords) {
  ClosedLoopOptions options = Options(1, 1);
  options.slots = 1;
  EXPECT_EQ(ServeClosedLoop(options).status().code(), Code::kInvalid);
  options.engine.admission = "perhaps";
  options.engine.admission_reserve = 2;
  const std::string message = ServeClosedLoop(options).status().message();
  EXPECT_NE(message.find("perhaps"), std::string::npos) << message;
  EXPECT_NE(message.find("admission-reserve is 2"), std::string::npos) << message;
}

// Without a thought for answers more begin than can go on; a reserve makes that rarer, and promises prevent it.
TEST(ClosedLoop, OptimistsArePreempted) {
  ClosedLoopOptions options = Options(60, 40);
  for (RequestLengths& lengths : options.requests) lengths = {.prompt_tokens = 32, .output_tokens = 320};
  options.slots = 200;
  const auto preemptions = [&](const char* admission, double reserve) {
    options.engine.admission = admission;
    options.engine.admission_reserve = reserve;
    const auto report = ServeClosedLoop(options);
    EXPECT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->output_tokens, 60u * 320);
    return report->last.preemptions;
  };
  const uint64_t optimistic = preemptions("optimistic", 0);
  EXPECT_GT(optimistic, 20u);
  EXPECT_LT(preemptions("optimistic", 0.5), optimistic);
  EXPECT_EQ(preemptions("guaranteed", 0), 0u);
}

TEST(LengthLaw, HasTheMeanAndVariationThatItSays) {
  SplitMix64 random(1);
  const LengthLaw law{.mean = 300, .variation = 0.8};
  constexpr int kDraws = 100'000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double tokens = law.Draw(random, 1'000'000);
    sum += tokens;
    squares += tokens * tokens;
  }
  const double mean = sum / kDraws;
  EXPECT_NEAR(mean, 300, 6);
  EXPECT_NEAR(std::sqrt(squares / kDraws - mean * mean) / mean, 0.8, 0.03);
  for (int i = 0; i < 1000; ++i) EXPECT_LE(law.Draw(random, 100), 100u);
}

}  // namespace
}  // namespace cachalot::sim
