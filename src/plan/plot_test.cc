#include "plan/plot.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/report.h"
#include "plan/svg_drawing.h"

namespace cachalot::plan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Plot TwoLines() {
  return {.title = "Title",
          .x_title = "time",
          .unit = Unit::kShare,
          .top = 1,
          .x = {0, 10, 20},
          .lines = {{"a", {0, 0.5, 1}}, {"b", {1, kNone, 0}}}};
}

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// The points of the n-th line or area.
std::string PointsOf(const std::string& svg, const std::string& tag, size_t n = 0) {
  size_t at = 0;
  for (size_t i = 0; i <= n; ++i) at = svg.find("<" + tag + " points=\"", at + 1);
  if (at == std::string::npos) return "";
  const size_t begin = svg.find('"', at) + 1;
  return svg.substr(begin, svg.find('"', begin) - begin);
}

TEST(Plot, DrawsEachLineOverTheWholeAxisAndNamesIt) {
  const std::string svg = PlotAsSvg(TwoLines());
  EXPECT_EQ(PointsOf(svg, "polyline"), "120.0,194.0 415.0,103.0 710.0,12.0");
  EXPECT_THAT(svg, HasSubstr(">a</text>"));
  EXPECT_THAT(svg, HasSubstr(">b</text>"));
  EXPECT_THAT(svg, HasSubstr(">60.0 %</text>"));
  EXPECT_THAT(svg, HasSubstr(">10 s</text>"));
  EXPECT_THAT(svg, HasSubstr("aria-label=\"Title\""));
}

TEST(Plot, LeavesAGapWhereThereIsNoValue) {
  const std::string svg = PlotAsSvg(TwoLines());
  EXPECT_EQ(CountOf(svg, "<polyline"), 3u) << "the second line is in two pieces";
  EXPECT_EQ(PointsOf(svg, "polyline", 1), "120.0,12.0 121.0,12.0");
}

TEST(Plot, HoldsAValueUntilOrFromItsPlace) {
  Plot plot = TwoLines();
  plot.lines.resize(1);
  plot.course = Plot::Course::kUntil;
  EXPECT_EQ(PointsOf(PlotAsSvg(plot), "polyline"), "120.0,194.0 120.0,103.0 415.0,103.0 415.0,12.0 710.0,12.0");
  plot.course = Plot::Course::kFrom;
  EXPECT_EQ(PointsOf(PlotAsSvg(plot), "polyline"), "120.0,194.0 415.0,194.0 415.0,103.0 710.0,103.0 710.0,12.0");
}

TEST(Plot, StacksAreasOnTopOfEachOther) {
  Plot plot = TwoLines();
  plot.stacked = true;
  plot.lines = {{"a", {0.25, 0.25}}, {"b", {0.5, 0.5}}};
  plot.x = {0, 1};
  const std::string svg = PlotAsSvg(plot);
  EXPECT_EQ(PointsOf(svg, "polygon", 0), "120.0,194.0 710.0,194.0 710.0,148.5 120.0,148.5");
  EXPECT_EQ(PointsOf(svg, "polygon", 1), "120.0,148.5 710.0,148.5 710.0,57.5 120.0,57.5");
}

TEST(Plot, PutsPowersOfTenInEqualSteps) {
  Plot plot{
      .x_title = "blocks", .x_unit = Unit::kCount, .log_x = true, .x = {10, 100, 1000}, .lines = {{"a", {1, 2, 4}}}};
  const std::string svg = PlotAsSvg(plot);
  EXPECT_EQ(PointsOf(svg, "polyline"), "120.0,148.5 415.0,103.0 710.0,12.0");
  for (const char* place : {">10<", ">100<", ">1,000<"}) EXPECT_THAT(svg, HasSubstr(place));
}

TEST(Plot, DrawsNothingOfOnePlaceAndNoNumberThatIsNone) {
  Plot plot = TwoLines();
  plot.x = {3};
  for (Plot::Line& line : plot.lines) line.values.resize(1);
  EXPECT_EQ(PlotAsSvg(plot), "");
  plot = TwoLines();
  plot.top = 0;
  plot.lines = {
      {"a", {0, 0, 0}}, {"b", {kNone, kNone, kNone}}, {"c", {-1, std::numeric_limits<double>::infinity(), 0}}};
  const std::string svg = PlotAsSvg(plot);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(Plot, NamesCannotBecomeMarkup) {
  Plot plot = TwoLines();
  plot.title = plot.x_title = plot.lines[0].label = "</svg><script>\"&\xff";
  Report report;
  report.title = "<img src=x>";
  report.plots = {plot};
  const std::string html = ReportAsHtml(report);
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html, Not(HasSubstr("\xff")));
  EXPECT_THAT(html, HasSubstr("aria-label=\"&lt;/svg&gt;&lt;script&gt;&quot;&amp;\xEF\xBF\xBD\""));
  EXPECT_EQ(CountOf(html, "<svg"), 1u);
}

TEST(TickStep, IsOneTwoOrFiveTimesAPowerOfTen) {
  EXPECT_DOUBLE_EQ(TickStep(1, 1), 0.2);
  EXPECT_DOUBLE_EQ(TickStep(40, 1), 10);
  EXPECT_DOUBLE_EQ(TickStep(23, 1), 5);
  EXPECT_DOUBLE_EQ(TickStep(10 * 1024, 1024), 2 * 1024);
  EXPECT_DOUBLE_EQ(TickStep(100, 1, 10), 10);
}

}  // namespace
}  // namespace cachalot::plan
