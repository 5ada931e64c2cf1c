#include "sim/agreement.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/metrics.h"
#include "sim/trace_serving.h"

namespace cachalot::sim {
namespace {

// A server and a simulation of ten requests that did the same.
struct Both {
  Metrics metrics;
  TraceServingReport simulated;

  Both() {
    metrics.Add(Counter::kRequests, 10, "stop");
    metrics.Add(Counter::kPromptTokensCached, 10'000);
    metrics.Add(Counter::kPreemptions, 100);
    metrics.Add(Counter::kEngineTime, 8'000'000, "compute");
    for (int i = 0; i < 10; ++i) metrics.Observe(Histogram::kTimeToFirstToken, 0.3);
    simulated.served = 10;
    simulated.duration = std::chrono::seconds(10);
    simulated.last.prompt_tokens_cached = 10'000;
    simulated.last.preemptions = 100;
    simulated.time.compute = std::chrono::seconds(8);
    simulated.time.idle = std::chrono::seconds(2);
    simulated.ttft.Add(std::chrono::milliseconds(300));
  }
  AgreementRow Row(std::string_view what) const {
    const Agreement agreement = CompareWithServer(Scrape::Read(metrics.Exposition()).value(), simulated);
    const auto row = std::ranges::find(agreement.rows, what, &AgreementRow::what);
    EXPECT_NE(row, agreement.rows.end()) << what;
    return row == agreement.rows.end() ? AgreementRow() : *row;
  }
  AgreementRow::Verdict Of(std::string_view what) const { return Row(what).verdict; }
};

constexpr auto kAgrees = AgreementRow::Verdict::kAgrees;
constexpr auto kDiffers = AgreementRow::Verdict::kDiffers;

TEST(Agreement, IsWholeWhereBothDidTheSame) {
  const Both both;
  const Agreement agreement = CompareWithServer(Scrape::Read(both.metrics.Exposition()).value(), both.simulated);
  for (const AgreementRow& row : agreement.rows) EXPECT_NE(row.verdict, kDiffers) << row.what;
  EXPECT_EQ(agreement.server_requests, 10u);
  EXPECT_EQ(agreement.recorded_requests, 10u);
  EXPECT_EQ(both.Of("idle, of the record's time"), AgreementRow::Verdict::kNotJudged);
  EXPECT_NEAR(both.Row("idle, of the record's time").above, 0.2, 1e-9);
}

TEST(Agreement, AllowsOnePerCentOfTokensAndTenOfCountsAndTimes) {
  Both both;
  both.simulated.last.prompt_tokens_cached = 10'099;
  EXPECT_EQ(both.Of("prompt tokens found"), kAgrees);
  both.simulated.last.prompt_tokens_cached = 10'101;
  EXPECT_EQ(both.Of("prompt tokens found"), kDiffers);
  both.simulated.last.preemptions = 91;
  EXPECT_EQ(both.Of("preemptions"), kAgrees);
  both.simulated.last.preemptions = 89;
  EXPECT_EQ(both.Of("preemptions"), kDiffers);
  both.simulated.time.compute = std::chrono::milliseconds(8900);
  EXPECT_EQ(both.Of("the model ran"), kDiffers);
  EXPECT_NEAR(both.Row("the model ran").off, 0.9 / 8, 1e-9);
}

TEST(Agreement, MakesNothingOfFewTokensOrCounts) {
  Both both;
  both.simulated.last.refault_tokens = 60;
  both.simulated.last.slots_evicted = 3;
  EXPECT_EQ(both.Of("computed again, lost for want of room"), kAgrees);
  EXPECT_EQ(both.Of("slots evicted"), kAgrees);
  both.simulated.last.refault_tokens = 65;
  both.simulated.last.slots_evicted = 4;
  EXPECT_EQ(both.Of("computed again, lost for want of room"), kDiffers);
  EXPECT_EQ(both.Of("slots evicted"), kDiffers);
}

TEST(Agreement, TakesTheServersBucketForAQuantile) {
  Both both;
  EXPECT_EQ(both.Row("to the first token, p50").above, 0.25);
  EXPECT_EQ(both.Row("to the first token, p50").up_to, 0.5);
  const auto with = [&](int milliseconds) {
    both.simulated.ttft = DurationHistogram();
    both.simulated.ttft.Add(std::chrono::milliseconds(milliseconds));
  };
  with(570);
  EXPECT_EQ(both.Of("to the first token, p50"), kAgrees);
  with(590);
  EXPECT_EQ(both.Of("to the first token, p50"), kDiffers);
  EXPECT_EQ(both.Of("to the first token, p99"), kAgrees);
  with(200);
  EXPECT_EQ(both.Of("to the first token, p50"), kDiffers);
}

}  // namespace
}  // namespace cachalot::sim
