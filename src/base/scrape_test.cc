#include "base/scrape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/metrics.h"

namespace cachalot {
namespace {

using testing::HasSubstr;

Scrape ReadOf(const Metrics& metrics) {
  Result<Scrape> scrape = Scrape::Read(metrics.Exposition());
  EXPECT_TRUE(scrape.ok()) << scrape.status().message();
  return std::move(scrape).value();
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Scrape, ReadsWhatMetricsExpose) {
  Metrics metrics;
  metrics.Add(Counter::kPreemptions, 3);
  metrics.Add(Counter::kRequests, 5, "stop");
  metrics.Add(Counter::kRequests, 2, "error");
  metrics.Set(Gauge::kKvSlots, 1024);
  metrics.Set(Gauge::kHostBytes, 10, "cached");
  metrics.Set(Gauge::kHostBytes, 32, "free");
  metrics.Observe(Histogram::kTimeToFirstToken, 0.3);
  const Scrape scrape = ReadOf(metrics);
  EXPECT_EQ(scrape.Total(Counter::kPreemptions), 3);
  EXPECT_EQ(scrape.Total(Counter::kRequests, "stop"), 5);
  EXPECT_EQ(scrape.Total(Counter::kRequests, "error"), 2);
  EXPECT_EQ(scrape.Sum(Counter::kRequests), 7);
  EXPECT_EQ(scrape.Level(Gauge::kKvSlots), 1024);
  EXPECT_EQ(scrape.Sum(Gauge::kHostBytes), 42);
  EXPECT_EQ(scrape.Values(Histogram::kTimeToFirstToken).Quantile(0.5)->up_to, 0.5);
}

TEST(Scrape, BetweenTwoIsWhatWasAdded) {
  Metrics metrics;
  metrics.Add(Counter::kSteps, 10);
  metrics.Observe(Histogram::kStepTime, 0.02);
  const Scrape before = ReadOf(metrics);
  metrics.Add(Counter::kSteps, 5);
  metrics.Set(Gauge::kWaitingRequests, 4);
  metrics.Observe(Histogram::kStepTime, 2);
  const Scrape after = ReadOf(metrics);
  const Scrape between = Scrape::Between(before, after).value();
  EXPECT_EQ(between.Total(Counter::kSteps), 5);
  EXPECT_EQ(between.Level(Gauge::kWaitingRequests), 4);
  EXPECT_EQ(between.Values(Histogram::kStepTime).total(), 1);
  EXPECT_EQ(between.Values(Histogram::kStepTime).sum, 2);
  const Status back = Scrape::Between(after, before).status();
  EXPECT_EQ(back.code(), Code::kUnavailable);
  EXPECT_THAT(back.message(), HasSubstr("began anew"));
}

TEST(Scrape, NamesWhatIsMissingOrMakesNoSense) {
  const std::string text = Metrics().Exposition();
  const auto complaint = [](const std::string& t) { return Scrape::Read(t).status().message(); };
  EXPECT_EQ(complaint(text), "");
  EXPECT_THAT(complaint("up 1\n"), HasSubstr("cachalot_requests_total{outcome=\"stop\"} is not there"));
  EXPECT_THAT(complaint(Replaced(text, "\ncachalot_kv_slots 0", "\ncachalot_kv_slots NaN")),
              HasSubstr("cachalot_kv_slots is nan"));
  EXPECT_THAT(complaint(Replaced(text, "\ncachalot_steps_total 0", "\ncachalot_steps_total -1")),
              HasSubstr("cachalot_steps_total is -1"));
  EXPECT_THAT(complaint(Replaced(text, "\ncachalot_step_seconds_sum 0", "\nother 0")),
              HasSubstr("histogram cachalot_step_seconds is not there"));
  EXPECT_THAT(complaint(Replaced(text, "cachalot_step_seconds_bucket{le=\"0.001\"}",
                                 "cachalot_step_seconds_bucket{le=\"0.002\"}")),
              HasSubstr("other bounds"));
  EXPECT_THAT(complaint("<html>\n"), HasSubstr("line 1: expected the name"));
}

}  // namespace
}  // namespace cachalot
