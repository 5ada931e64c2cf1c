#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/units.h"
#include "plan/report.h"
#include "plan/svg_drawing.h"

namespace cachalot::plan {
namespace {

void DrawAxes(double last, double most_bytes, SvgDrawing& drawing) {
  const double unit = std::pow(1024, std::floor(std::log2(most_bytes) / 10));
  const double byte_step = TickStep(most_bytes, unit);
  const double left = drawing.size().left;
  for (int i = 0; i * byte_step <= most_bytes; ++i) {
    const double y = drawing.Y(i * byte_step);
    drawing.Line({left, y}, {drawing.right_edge(), y}, "stroke=\"#e3eaed\"");
    drawing.Label({left - 8, y + 4}, "end", FormatBytes(static_cast<uint64_t>(std::llround(i * byte_step))));
  }
  const double step = std::max(1., TickStep(last, 1));
  for (int i = 0; i * step <= last; ++i) {
    drawing.Label({drawing.X(i * step), drawing.bottom_edge() + 18}, "middle",
                  FormatCount(static_cast<uint64_t>(std::llround(i * step))));
  }
  drawing.Label({drawing.X(last / 2), drawing.size().height - 8}, "middle", "sequences at once");
}

void DrawCapacities(const Chart& chart, double most, SvgDrawing& drawing) {
  for (const Chart::Mark& capacity : chart.capacities) {
    const double bytes = static_cast<double>(capacity.value);
    if (bytes > most) break;
    const double y = drawing.Y(bytes);
    drawing.Line({drawing.size().left, y}, {drawing.right_edge(), y}, "stroke=\"#b3261e\" stroke-dasharray=\"6 4\"");
    drawing.Label({drawing.right_edge() + 8, y + 4}, "start", capacity.label);
  }
}

void DrawConcurrencies(const Chart& chart, SvgDrawing& drawing) {
  double label_y = drawing.size().top + 10;
  for (const Chart::Mark& mark : chart.concurrencies) {
    const double x = drawing.X(static_cast<double>(mark.value));
    drawing.Line({x, drawing.size().top}, {x, drawing.bottom_edge()}, "stroke=\"#1a2a33\" stroke-dasharray=\"2 3\"");
    drawing.Label({x + 4, label_y}, "start", mark.label);
    label_y += 14;
  }
}

}  // namespace

std::string ChartAsSvg(const Chart& chart) {
  if (chart.most_sequences == 0) return "";
  const double fixed = static_cast<double>(chart.fixed_bytes), last = static_cast<double>(chart.most_sequences);
  const double top = fixed + last * static_cast<double>(chart.sequence_bytes);
  double most = top;
  for (const Chart::Mark& capacity : chart.capacities) {  // the first that is above all
    most = std::max(most, static_cast<double>(capacity.value));
    if (static_cast<double>(capacity.value) >= top) break;
  }
  most = std::min(most, top * 3) * 1.05;
  SvgDrawing drawing({}, {.x_most = last, .y_most = most});
  DrawAxes(last, most, drawing);
  const auto area = [&](double from_left, double from_right, double to_left, double to_right) {
    return std::array<SvgPoint, 4>{{{drawing.X(0), drawing.Y(from_left)},
                                    {drawing.X(last), drawing.Y(from_right)},
                                    {drawing.X(last), drawing.Y(to_right)},
                                    {drawing.X(0), drawing.Y(to_left)}}};
  };
  drawing.Area(area(0, 0, fixed, fixed), "#9fb6c1");
  drawing.Area(area(fixed, fixed, fixed, top), "#3f9bbf");
  drawing.Label({drawing.X(last) + 8, drawing.Y(fixed / 2) + 4}, "start", "weights, activations");
  drawing.Label({drawing.X(last) + 8, drawing.Y((fixed + top) / 2) + 4}, "start", "KV");
  DrawCapacities(chart, most, drawing);
  DrawConcurrencies(chart, drawing);
  return drawing.Finish("Memory against sequences at once");
}

}  // namespace cachalot::plan
