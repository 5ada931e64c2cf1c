#include "cli/replay_report.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/replay_plots.h"
#include "cli/replay_run.h"
#include "sim/workload.h"

namespace cachalot::cli {
namespace {

using plan::Plot;
using ::testing::HasSubstr;
using ::testing::Not;

Replayed ReplayedWith(Arguments arguments) {
  arguments.insert(arguments.begin(), "--workload=agent");
  ReplaySettings settings;
  EXPECT_TRUE(ReadSettings(arguments, &settings).ok());
  const sim::Trace trace = sim::MakeWorkload("agent", {.requests = 60, .block_tokens = 64}).value();
  Result<Replayed> replayed = Replay(trace, settings);
  EXPECT_TRUE(replayed.ok()) << replayed.status().message();
  return replayed.ok() ? std::move(replayed).value() : Replayed();
}

Replayed WithEngine() {
  return ReplayedWith({"--engine", "--step-curve=0.01,5e-5,4e-9,0,2e-5", "--kv-blocks=2000", "--host-blocks=6000",
                       "--host-link=1GB", "--series-every=5"});
}

const Plot* Find(const std::vector<Plot>& plots, std::string_view title) {
  const auto found = std::ranges::find(plots, title, &Plot::title);
  return found == plots.end() ? nullptr : &*found;
}

std::string HtmlOf(const plan::Report& report) { return plan::ReportAsHtml(report); }

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ReplayReport, ShowsTheEngineOverTimePercentilesAndAllFigures) {
  const Replayed replayed = WithEngine();
  const plan::Report report = ReplayReport("a trace", replayed);
  const std::string html = HtmlOf(report);
  EXPECT_EQ(CountOf(html, "<svg"), 8u);
  for (const char* title : {"The pool", "Requests", "Found, and computed again", "Pressure and waste", "Tokens",
                            "Where time goes", "KV moved", "Blocks in lower tiers"}) {
    EXPECT_NE(Find(report.plots, title), nullptr) << title;
  }
  EXPECT_THAT(html, HasSubstr(">to the first token<"));
  for (const auto& [name, value] : replayed.figures) EXPECT_THAT(html, HasSubstr("<td>" + name + "</td>")) << name;
  for (const plan::Table& table : report.tables) {
    for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.columns.size()) << table.key;
  }
}

TEST(ReplayReport, StandsAloneAndEscapesNames) {
  Replayed replayed = WithEngine();
  replayed.figures.emplace_back("<b>", "</table><script>");
  for (const plan::Report& report :
       {ReplayReport("<i>trace", replayed),
        SweepReport("<i>trace", {Json(Json::Object{{"<b>", "</script><script>"}, {"token_hit_rate", 0.5}})})}) {
    const std::string html = HtmlOf(report);
    for (const char* outside : {"<script", "src=", "href=", "url(", "@import", "<i>", "<b>"}) {
      EXPECT_THAT(html, Not(HasSubstr(outside))) << outside;
    }
    EXPECT_EQ(CountOf(html, "http"), CountOf(html, "http://www.w3.org/2000/svg"));
    EXPECT_TRUE(html.starts_with("<!doctype html>"));
    EXPECT_TRUE(html.ends_with("</html>\n"));
  }
}

TEST(ReplayReport, OfBlocksHasFiguresAndNoPlot) {
  const plan::Report report = ReplayReport("blocks", ReplayedWith({"--capacity-blocks=50"}));
  EXPECT_TRUE(report.plots.empty());
  EXPECT_THAT(HtmlOf(report), HasSubstr("<td>block_hit_rate</td>"));
}

TEST(ReplayPlots, RatesAreWhatCameBetweenSamples) {
  std::vector<sim::ServingSample> samples(3);
  samples[1] = {
      .time = std::chrono::seconds(2), .running = 3, .prompt_tokens_cached = 30, .prompt_tokens_computed = 10};
  samples[2] = {
      .time = std::chrono::seconds(4), .in_use = 0.5, .prompt_tokens_cached = 30, .prompt_tokens_computed = 10};
  samples[2].moved.to_pool = 1000;
  samples[1].spent.compute = std::chrono::seconds(1);
  samples[1].spent.idle = std::chrono::seconds(1);
  samples[2].spent = samples[1].spent;
  const std::vector<Plot> plots = SeriesPlots(samples);
  const Plot& hits = *Find(plots, "Found, and computed again");
  EXPECT_TRUE(std::isnan(hits.lines[0].values[0]));
  EXPECT_EQ(hits.lines[0].values[1], 0.75);
  EXPECT_TRUE(std::isnan(hits.lines[0].values[2])) << "no prompt came";
  EXPECT_EQ(Find(plots, "Tokens")->lines[1].values[1], 15) << "a second";
  EXPECT_EQ(Find(plots, "KV moved")->lines[1].values[2], 500);
  EXPECT_EQ(Find(plots, "Where time goes")->lines[0].values[1], 0.5);
  EXPECT_EQ(Find(plots, "Requests")->lines[0].values[1], 3);
  EXPECT_EQ(Find(plots, "The pool")->lines[0].values[2], 0.5);
  EXPECT_EQ(Find(plots, "Blocks in lower tiers"), nullptr);
}

TEST(ReplayPlots, ManySamplesAreThinned) {
  std::vector<sim::ServingSample> samples(10 * kMostPlaces + 7);
  for (size_t i = 0; i < samples.size(); ++i) samples[i].time = std::chrono::seconds(i);
  const std::vector<Plot> plots = SeriesPlots(samples);
  EXPECT_LE(plots[0].x.size(), kMostPlaces);
  EXPECT_GT(plots[0].x.back(), 10 * kMostPlaces - 20);
  EXPECT_TRUE(SeriesPlots({}).empty());
  EXPECT_TRUE(SeriesPlots({sim::ServingSample()}).empty());
}

TEST(ReplayPlots, ACurveIsInOrderOfItsCapacities) {
  Json::Array rows;
  for (const int capacity : {1000, 10, 100}) {
    rows.emplace_back(Json::Object{{"capacity_blocks", capacity},
                                   {"lru_block_hit_rate", capacity / 2000.0},
                                   {"lru_token_hit_rate", capacity / 1000.0},
                                   {"optimum_block_hit_rate", 0.5},
                                   {"optimum_token_hit_rate", 1.0}});
  }
  const Plot plot = CurvePlot(rows);
  EXPECT_EQ(plot.x, (std::vector<double>{10, 100, 1000}));
  EXPECT_EQ(plot.lines[0].values, (std::vector<double>{0.01, 0.1, 1}));
  EXPECT_TRUE(plot.log_x);
  EXPECT_EQ(CountOf(HtmlOf(CurveReport("curve", rows)), "<polyline"), 4u);
}

Json RowOf(const std::string& policy, const std::string& blocks, double rate) {
  return Json::Object{{"policy", policy}, {"capacity-blocks", blocks}, {"token_hit_rate", rate}};
}

TEST(ReplayPlots, ASweepOverANumberIsALinePerOtherSetting) {
  const std::vector<Plot> plots = SweepPlots(
      {RowOf("lru", "20", 0.1), RowOf("lru", "10", 0.05), RowOf("fifo", "20", 0.2), RowOf("fifo", "10", 0.15)});
  ASSERT_EQ(plots.size(), 1u);
  EXPECT_EQ(plots[0].x_title, "capacity-blocks");
  EXPECT_EQ(plots[0].x, (std::vector<double>{10, 20}));
  ASSERT_EQ(plots[0].lines.size(), 2u);
  EXPECT_EQ(plots[0].lines[0].label, "lru");
  EXPECT_EQ(plots[0].lines[0].values, (std::vector<double>{0.05, 0.1}));
  EXPECT_EQ(plots[0].lines[1].values, (std::vector<double>{0.15, 0.2}));
  EXPECT_TRUE(SweepPlots({RowOf("lru", "20", 0.1), RowOf("fifo", "20", 0.2)}).empty()) << "no number was swept";
  EXPECT_TRUE(SweepPlots({}).empty());
}

}  // namespace
}  // namespace cachalot::cli
