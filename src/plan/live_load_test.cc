#include "plan/live_load.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/metrics.h"
#include "plan/live_report.h"

namespace cachalot::plan {
namespace {

using ::testing::HasSubstr;

constexpr double kSeconds = 10;
using Change = std::function<void(Metrics&)>;

LiveWindow WindowOf(const Change& before, const Change& after) {
  Metrics metrics;
  metrics.Set(Gauge::kKvSlots, 100);
  metrics.Set(Gauge::kKvFreeSlots, 60);
  metrics.Set(Gauge::kKvIdleSlots, 10);
  metrics.Set(Gauge::kStepCost, 0.01, "step");
  metrics.Set(Gauge::kStepCost, 0.001, "row");
  before(metrics);
  const Scrape first = Scrape::Read(metrics.Exposition()).value();
  after(metrics);
  return LiveWindow::Of(first, Scrape::Read(metrics.Exposition()).value(), kSeconds).value();
}

// 100 steps of ten rows, of which each took as long as was learnt, and requests that wait.
void BusyWithRows(Metrics& metrics) {
  metrics.Add(Counter::kSteps, 100);
  metrics.Add(Counter::kTokensComputed, 8000);
  metrics.Add(Counter::kEngineTime, 9'500'000, "compute");
  metrics.Set(Gauge::kRunningSequences, 10);
}
void OneWaits(Metrics& metrics) { metrics.Set(Gauge::kWaitingRequests, 1); }
void TwoWait(Metrics& metrics) { metrics.Set(Gauge::kWaitingRequests, 2); }

LiveBound BoundAfter(const Change& after, const Change& before = OneWaits) {
  return JudgeLive(WindowOf(before, [&](Metrics& m) { after(m); })).bound;
}

TEST(JudgeLive, SaysThatNobodyWasThereOrNobodyWaited) {
  const auto nothing = [](Metrics&) {};
  EXPECT_EQ(BoundAfter(nothing, nothing), LiveBound::kNobodyThere);
  EXPECT_EQ(BoundAfter(BusyWithRows, nothing), LiveBound::kNothing);
}

TEST(JudgeLive, TellsComputeFromBandwidthByTheLearntCostOfSteps) {
  EXPECT_EQ(BoundAfter(BusyWithRows), LiveBound::kCompute);
  const auto with_few_rows = [](Metrics& m) {
    m.Add(Counter::kSteps, 900);
    m.Add(Counter::kTokensComputed, 900);
    m.Add(Counter::kEngineTime, 9'900'000, "compute");
  };
  EXPECT_EQ(BoundAfter(with_few_rows), LiveBound::kBandwidth);
  const LiveShares shares = SharesOf(WindowOf(OneWaits, with_few_rows));
  EXPECT_NEAR(shares.by_step, 9 / 9.9, 1e-9);
  EXPECT_NEAR(shares.by_row, 0.9 / 9.9, 1e-9);
  EXPECT_NEAR(shares.by_attention, 0, 1e-9);
}

TEST(JudgeLive, SeesWhatRequestsWaitFor) {
  const auto with = [](const Change& more) {
    return BoundAfter([&](Metrics& m) {
      BusyWithRows(m);
      more(m);
    });
  };
  const auto pressed = [](Metrics& m) { m.Add(Counter::kKvPressureTime, 5'000'000, "some"); };
  EXPECT_EQ(with(pressed), LiveBound::kCapacity);
  EXPECT_EQ(with([&](Metrics& m) {
              pressed(m);
              m.Set(Gauge::kKvLedgerBytes, 60, "live");
              m.Set(Gauge::kKvLedgerBytes, 40, "waste");
            }),
            LiveBound::kFragmentation);
  EXPECT_EQ(with([&](Metrics& m) {
              pressed(m);
              m.Add(Counter::kRefaultTokens, 4000);
            }),
            LiveBound::kRecomputation);
  EXPECT_EQ(with([](Metrics& m) { m.Add(Counter::kEngineTime, 3'000'000, "transfers"); }), LiveBound::kTransfers);
  EXPECT_EQ(with([](Metrics& m) { m.Set(Gauge::kCappedRequests, 1); }), LiveBound::kCaps);
}

TEST(JudgeLive, AdmitsWhatItCannotTell) {
  const auto idle = [](Metrics& m) {
    m.Add(Counter::kSteps, 5);
    m.Add(Counter::kEngineTime, 1'000'000, "compute");
  };
  EXPECT_EQ(BoundAfter(idle), LiveBound::kUnclear);
}

TEST(JudgeLive, SeesTheQueueGrow) {
  EXPECT_TRUE(JudgeLive(WindowOf(OneWaits, TwoWait)).growing);
  EXPECT_FALSE(JudgeLive(WindowOf(TwoWait, OneWaits)).growing);
}

Report ReportAfter(const Change& after) {
  const LiveWindow window = WindowOf(OneWaits, after);
  return BuildLiveReport({"http://h:1", "m"}, window, JudgeLive(window));
}

TEST(LiveReport, SaysWhatBindsHowTheQueueStandsAndWhatItCannotTell) {
  const Report report = ReportAfter([](Metrics& m) {
    BusyWithRows(m);
    TwoWait(m);
    m.Add(Counter::kPromptTokensCached, 100);
    m.Add(Counter::kPromptTokensComputed, 300);
    m.Add(Counter::kShadowHitTokens, 150, "2");
    m.Add(Counter::kShadowHitTokens, 200, "inf");
  });
  ASSERT_EQ(report.answers.size(), 4u);
  EXPECT_THAT(report.answers[0], HasSubstr("Compute binds: requests wait while the model runs 95.0 % of the time"));
  EXPECT_THAT(report.answers[0], HasSubstr("more KV does nothing; 30.0 % of the pool is in use"));
  EXPECT_EQ(report.answers[1], "The queue grows: 1 requests waited, then 2.");
  EXPECT_THAT(report.answers[2], HasSubstr("found 25.0 % of prompt tokens; a pool of twice the size would have found "
                                           "37.5 %, one without limit 50.0 %"));
  EXPECT_THAT(report.answers[3], HasSubstr("`cachalot serve m --record FILE`"));
}

TEST(LiveReport, SaysWhatOfThePoolHelps) {
  const auto pressed = [](Metrics& m) { m.Add(Counter::kKvPressureTime, 5'000'000, "some"); };
  EXPECT_THAT(ReportAfter(pressed).answers[0], ::testing::EndsWith("30.0 % of the pool is in use."));
  const Report busy = ReportAfter([&](Metrics& m) {
    pressed(m);
    BusyWithRows(m);
  });
  const Report wasteful = ReportAfter([&](Metrics& m) {
    pressed(m);
    m.Set(Gauge::kKvLedgerBytes, 60, "live");
    m.Set(Gauge::kKvLedgerBytes, 40, "waste");
    m.Set(Gauge::kKvLedgerBytes, 900, "free");
  });
  EXPECT_THAT(wasteful.answers[0], HasSubstr("40.0 % of what blocks take holds no token"));
  EXPECT_THAT(busy.answers[0], HasSubstr("Capacity binds: requests waited for KV 50.0 % of the time"));
  EXPECT_THAT(busy.answers[0], HasSubstr("the model ran 95.0 % of it, so that more KV helps only by running more"));
}

TEST(LiveReport, HasACellForEveryColumnAndCountsOnlyWhatCameBetween) {
  const Report report = ReportAfter([](Metrics& m) {
    BusyWithRows(m);
    m.Add(Counter::kPreemptions, 7);
    m.Add(Counter::kPromptTokensByClass, 5, "new");
    m.Observe(Histogram::kTimeToFirstToken, 0.3);
    m.Observe(Histogram::kRequestTime, 1e6);
  });
  for (const Table& table : report.tables) {
    for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size()) << table.key;
  }
  const nlohmann::json json = nlohmann::json::parse(ReportAsJson(report));
  for (const auto& row : json["tables"]["added"]["rows"]) {
    EXPECT_EQ(row["between"]["value"] == 7, row["what"] == "preemptions") << row["what"];
  }
  EXPECT_EQ(json["tables"]["latency"]["rows"][0]["p50"], "250 ms to 500 ms");
  EXPECT_EQ(json["tables"]["latency"]["rows"][1]["p50"], "-");
  EXPECT_EQ(json["tables"]["latency"]["rows"][2]["p50"], "over 600 s");
  EXPECT_EQ(json["tables"]["prompt_tokens"]["rows"].size(), 1u);
}

}  // namespace
}  // namespace cachalot::plan
