#include "load/resume_report.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cachalot::load {
namespace {

using std::chrono::milliseconds;

ResumeReport Report() {
  ResumeReport report({.url = "http://x", .model = "m", .way = "cachalot", .options = {}, .fit = {}});
  for (const int ms : {400, 100, 300, 200}) {
    report.Add(Rest::kCold, {.ttft = milliseconds(ms), .prompt_tokens = 100, .cached_tokens = 0});
  }
  report.Add(Rest::kSuspended, {.ttft = milliseconds(20),
                                .restore = milliseconds(5),
                                .prompt_tokens = 100,
                                .cached_tokens = 99,
                                .where = "disk"});
  report.Add(Rest::kSuspended, {.ttft = milliseconds(10), .prompt_tokens = 100, .cached_tokens = 97, .where = "host"});
  report.AddSuspend(Rest::kSuspended, milliseconds(7));
  return report;
}

TEST(ResumeReport, QuantilesAreValuesThatWereMeasured) {
  const ResumeReport report = Report();
  EXPECT_EQ(report.MedianTtft(Rest::kCold), Nanos(milliseconds(200)));
  EXPECT_EQ(report.MedianTtft(Rest::kSuspended), Nanos(milliseconds(10)));
  EXPECT_EQ(report.MedianTtft(Rest::kHot), Nanos(0));
  const nlohmann::json told = nlohmann::json::parse(report.Json());
  EXPECT_EQ(told["rests"][0]["ttft_ms"], nlohmann::json::parse(R"({"min":100.0,"p50":200.0,"p99":400.0,"max":400.0})"));
  EXPECT_EQ(told["rests"][0]["cold_over_it"], 1.0);
  EXPECT_EQ(told["rests"][1]["cold_over_it"], 20.0);
  EXPECT_EQ(told["rests"][1]["cached_tokens"], 98);
  EXPECT_EQ(told["rests"][1]["places"], nlohmann::json::parse(R"({"disk":1,"host":1})"));
}

TEST(ResumeReport, TheTableHasARowPerKind) {
  const std::string table = Report().Table();
  EXPECT_NE(table.find("| cold | 200.0 | 400.0 | 100.0 | 400.0 | | | 0 of 100 |  | 1.0 |"), std::string::npos) << table;
  EXPECT_NE(table.find("| suspended | 10.0 | 20.0 | 10.0 | 20.0 | | 7.0 | 98 of 100 | disk (1), host (1) | 20.0 |"),
            std::string::npos)
      << table;
}

TEST(ResumeReport, AServerThatDoesNotTellCachedTokensIsNotSaidToHaveNone) {
  ResumeReport report({.options = {}, .fit = {}});
  report.Add(Rest::kHot, {.ttft = milliseconds(1), .prompt_tokens = 5});
  EXPECT_NE(report.Table().find("| ? of 5 |"), std::string::npos) << report.Table();
  EXPECT_TRUE(nlohmann::json::parse(report.Json())["rests"][0]["cached_tokens"].is_null());
}

}  // namespace
}  // namespace cachalot::load
