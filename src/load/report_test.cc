#include "load/report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cachalot::load {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(DurationHistogram, QuantilesAreNearTheExactOnes) {
  DurationHistogram histogram;
  EXPECT_EQ(histogram.Quantile(0.5), Nanos(0));
  for (int i = 1; i <= 10000; ++i) histogram.Add(std::chrono::microseconds(i));
  for (double share : {0.01, 0.5, 0.9, 0.99}) {
    EXPECT_NEAR(ToSeconds(histogram.Quantile(share)), share * 0.01, share * 0.01 * 0.008) << share;
  }
  EXPECT_GE(histogram.Quantile(0), histogram.min());
  EXPECT_EQ(histogram.Quantile(1), milliseconds(10));
  EXPECT_NEAR(histogram.MeanSeconds(), 0.0050005, 1e-9);
}

TEST(DurationHistogram, TakesEveryDuration) {
  DurationHistogram histogram;
  for (Nanos value : {Nanos(-5), Nanos(0), Nanos(127), Nanos(128), Nanos::max()}) histogram.Add(value);
  EXPECT_EQ(histogram.count(), 5u);
  EXPECT_EQ(histogram.min(), Nanos(0));
  EXPECT_EQ(histogram.Quantile(1), Nanos::max());
  EXPECT_EQ(histogram.Quantile(0.6), Nanos(127));
}

// Sent at `sent`, due a second before; two tokens 10 ms apart after 100 ms; ended 20 ms later.
RequestRecord Ok(Nanos sent) {
  RequestRecord record;
  record.due = sent - seconds(1);
  record.sent = sent;
  record.ended = sent + milliseconds(130);
  record.answer.status = 200;
  record.answer.first_piece = sent + milliseconds(100);
  record.answer.gaps = {milliseconds(10)};
  record.answer.pieces = 2;
  record.answer.usage = {.prompt_tokens = 50, .output_tokens = 2, .cached_tokens = 20};
  return record;
}

RequestRecord Failed(int status) {
  RequestRecord record;
  record.outcome = Outcome::kStatus;
  record.answer.status = status;
  record.why = "HTTP\n\x1b[31m";
  return record;
}

TEST(Report, SumsUpARun) {
  LoadReport report({.url = "http://h", .model = "m"}, {.ttft = milliseconds(1100)});
  report.Add(Ok(seconds(1)));
  report.Add(Ok(seconds(2)));
  report.Add(Failed(429));
  report.Add(Failed(429));
  report.Add(Failed(503));
  RequestRecord aborted;
  aborted.outcome = Outcome::kAborted;
  report.Add(aborted);
  report.NoteInFlight(3);
  report.Finish(seconds(4));
  const auto json = nlohmann::json::parse(report.Json());
  EXPECT_EQ(json["requests"], nlohmann::json::parse(R"({"sent":6,"ok":2,"failed":3,"aborted":1})"));
  EXPECT_EQ(json["errors"]["kinds"], nlohmann::json::parse(R"({"status":3,"aborted":1})"));
  EXPECT_EQ(json["errors"]["statuses"], nlohmann::json::parse(R"({"429":2,"503":1})"));
  EXPECT_EQ(json["tokens"], nlohmann::json::parse(R"({"prompt":100,"output":4,"cached":40})"));
  EXPECT_EQ(json["goodput"]["good"], 2);
  EXPECT_EQ(json["throughput"]["requests_per_second"], 0.5);
  EXPECT_EQ(json["throughput"]["output_tokens_per_second"], 1);
  EXPECT_EQ(json["in_flight"]["peak"], 3);
  EXPECT_EQ(json["ttft_ms"]["p50"], 1100);  // from when it was due
  EXPECT_EQ(json["e2e_ms"]["max"], 1130);
  EXPECT_EQ(json["itl_ms"]["p99"], 10);
  EXPECT_EQ(json["itl_ms"]["count"], 2);
  EXPECT_EQ(json["late_ms"]["max"], 1000);
  const std::string table = report.Table();
  EXPECT_NE(table.find("cached: 40 of 100 prompt tokens (40.0 %)"), std::string::npos) << table;
  EXPECT_NE(table.find("HTTP 429: 2"), std::string::npos) << table;
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
}

TEST(Report, AnEmptyRunIsNoDivisionByZero) {
  LoadReport report({}, {});
  EXPECT_EQ(nlohmann::json::parse(report.Json())["throughput"]["requests_per_second"], 0);
  EXPECT_EQ(report.Table().find("nan"), std::string::npos);
}

TEST(Goodput, EveryLimitMustBeKept) {
  const RequestRecord record = Ok(seconds(5));
  EXPECT_TRUE(IsGood(record, {}));
  EXPECT_TRUE(IsGood(record, {milliseconds(1100), milliseconds(10), milliseconds(1130)}));
  EXPECT_FALSE(IsGood(record, {milliseconds(1099), Nanos(0), Nanos(0)}));
  EXPECT_FALSE(IsGood(record, {Nanos(0), milliseconds(9), Nanos(0)}));
  EXPECT_FALSE(IsGood(record, {Nanos(0), Nanos(0), milliseconds(1129)}));
  EXPECT_FALSE(IsGood(Failed(500), {}));
}

}  // namespace
}  // namespace cachalot::load
