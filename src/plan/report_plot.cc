#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "plan/plot.h"
#include "plan/svg_drawing.h"

namespace cachalot::plan {
namespace {

constexpr SvgDrawing::Size kSize = {.width = 900, .height = 240, .left = 120, .right = 190, .top = 12, .bottom = 46};
constexpr double kTicksBelow = 8;
constexpr std::array kLineColours = {"#2f7fa5", "#c4562b", "#4b8f4a", "#8a63a8", "#c99a1c", "#5b6b73"};
constexpr std::array kAreaColours = {"#3f9bbf", "#b9d3de", "#c99a1c", "#9fb6c1"};

std::string_view ColourOf(const Plot& plot, size_t line) {
  return plot.stacked ? kAreaColours[line % kAreaColours.size()] : kLineColours[line % kLineColours.size()];
}

struct Place {
  double x = 0;
  size_t value = 0;  // that holds there
};

// Where lines have corners.
std::vector<Place> CornersOf(const Plot& plot) {
  std::vector<Place> corners;
  for (size_t i = 0; i < plot.x.size(); ++i) {
    if (i > 0 && plot.course == Plot::Course::kUntil) corners.push_back({plot.x[i - 1], i});
    if (i > 0 && plot.course == Plot::Course::kFrom) corners.push_back({plot.x[i], i - 1});
    corners.push_back({plot.x[i], i});
  }
  return corners;
}

double ValueOf(double value) { return std::isfinite(value) ? std::max(value, 0.0) : 0; }

double HighestOf(const Plot& plot) {
  double highest = plot.top;
  for (size_t i = 0; i < plot.x.size(); ++i) {
    double sum = 0;
    for (const Plot::Line& line : plot.lines) {
      sum = plot.stacked ? sum + ValueOf(line.values[i]) : ValueOf(line.values[i]);
      highest = std::max(highest, sum);
    }
  }
  return highest > 0 ? highest : 1;
}

// "0", "1,000", "50.0 %", "25 GB/s".
std::string TickText(double value, Unit unit) {
  if (value == 0) return "0";
  const bool whole = std::abs(value - std::round(value)) < 1e-9 && value < 1e15;
  const bool counted = unit == Unit::kCount || unit == Unit::kTokens || unit == Unit::kBytes;
  if (counted && whole) return FormatCell({static_cast<uint64_t>(std::llround(value)), unit});
  return FormatCell({value, unit});
}

// Places of the labels below: equal steps, or powers of ten.
std::vector<double> PlacesOf(const Plot& plot) {
  const double first = plot.x.front(), last = plot.x.back();
  std::vector<double> places;
  if (plot.log_x) {
    for (double power = std::pow(10, std::ceil(std::log10(first) - 1e-9)); power <= last * (1 + 1e-9); power *= 10) {
      places.push_back(power);
    }
    if (places.size() < 2) places = {first, last};
    return places;
  }
  const double step = TickStep(last - first, 1, kTicksBelow);
  for (double place = std::ceil(first / step - 1e-9) * step; place <= last + step * 1e-9; place += step) {
    places.push_back(place);
  }
  return places;
}

void DrawAxes(const Plot& plot, double most, SvgDrawing& drawing) {
  const double step = TickStep(most, 1), left = drawing.size().left;
  for (int i = 0; i * step <= most * (1 + 1e-9); ++i) {
    const double y = drawing.Y(i * step);
    drawing.Line({left, y}, {drawing.right_edge(), y}, "stroke=\"#e3eaed\"");
    drawing.Label({left - 8, y + 4}, "end", TickText(i * step, plot.unit));
  }
  for (const double place : PlacesOf(plot)) {
    const double x = drawing.X(place);
    drawing.Line({x, drawing.bottom_edge()}, {x, drawing.bottom_edge() + 5}, "stroke=\"#9fb6c1\"");
    drawing.Label({x, drawing.bottom_edge() + 18}, "middle", TickText(place, plot.x_unit));
  }
  drawing.Label({(left + drawing.right_edge()) / 2, drawing.size().height - 8}, "middle", plot.x_title);
}

void DrawLine(const Plot& plot, size_t line, SvgDrawing& drawing) {
  const std::string style = fmt::format("stroke=\"{}\" stroke-width=\"1.6\"", ColourOf(plot, line));
  std::vector<SvgPoint> points;
  const auto draw = [&] {
    if (points.size() == 1) points.push_back({points[0].x + 1, points[0].y});  // else nothing would be seen
    if (!points.empty()) drawing.Curve(points, style);
    points.clear();
  };
  for (const Place& corner : CornersOf(plot)) {
    const double value = plot.lines[line].values[corner.value];
    if (std::isfinite(value)) {
      points.push_back({drawing.X(corner.x), drawing.Y(ValueOf(value))});
    } else {
      draw();
    }
  }
  draw();
}

void DrawStack(const Plot& plot, SvgDrawing& drawing) {
  const std::vector<Place> corners = CornersOf(plot);
  std::vector<double> below(plot.x.size(), 0);
  for (size_t line = 0; line < plot.lines.size(); ++line) {
    std::vector<SvgPoint> area;
    area.reserve(2 * corners.size());
    for (const Place& corner : corners) area.push_back({drawing.X(corner.x), drawing.Y(below[corner.value])});
    for (size_t i = 0; i < below.size(); ++i) below[i] += ValueOf(plot.lines[line].values[i]);
    for (size_t i = corners.size(); i-- > 0;) {
      area.push_back({drawing.X(corners[i].x), drawing.Y(below[corners[i].value])});
    }
    drawing.Area(area, ColourOf(plot, line));
  }
}

void DrawLegend(const Plot& plot, SvgDrawing& drawing) {
  double y = drawing.size().top + 8;
  for (size_t line = 0; line < plot.lines.size(); ++line) {
    const double x = drawing.right_edge() + 12;
    drawing.Area(std::array<SvgPoint, 4>{{{x, y - 9}, {x + 10, y - 9}, {x + 10, y + 1}, {x, y + 1}}},
                 ColourOf(plot, line));
    drawing.Label({x + 16, y}, "start", plot.lines[line].label);
    y += 18;
  }
}

}  // namespace

std::string PlotAsSvg(const Plot& plot) {
  if (plot.x.size() < 2 || plot.x.back() <= plot.x.front()) return "";
  const double most = HighestOf(plot);
  SvgDrawing drawing(kSize, {.x_least = plot.x.front(), .x_most = plot.x.back(), .y_most = most, .log_x = plot.log_x});
  if (plot.stacked) DrawStack(plot, drawing);
  DrawAxes(plot, most, drawing);
  for (size_t line = 0; line < plot.lines.size() && !plot.stacked; ++line) DrawLine(plot, line, drawing);
  DrawLegend(plot, drawing);
  return drawing.Finish(plot.title);
}

}  // namespace cachalot::plan
