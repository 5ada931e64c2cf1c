#include "plan/svg_drawing.h"

#include <cmath>

#include <fmt/format.h>

#include "plan/report.h"

namespace cachalot::plan {
namespace {

std::string Text(std::span<const SvgPoint> points) {
  std::string text;
  for (const SvgPoint& point : points)
    text += fmt::format("{}{:.1f},{:.1f}", text.empty() ? "" : " ", point.x, point.y);
  return text;
}

}  // namespace

double SvgDrawing::X(double value) const {
  const double share = axes_.log_x ? std::log(value / axes_.x_least) / std::log(axes_.x_most / axes_.x_least)
                                   : (value - axes_.x_least) / (axes_.x_most - axes_.x_least);
  return size_.left + share * (size_.width - size_.left - size_.right);
}

double SvgDrawing::Y(double value) const {
  return bottom_edge() - value / axes_.y_most * (size_.height - size_.top - size_.bottom);
}

void SvgDrawing::Line(SvgPoint from, SvgPoint to, std::string_view style) {
  out_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", from.x, from.y, to.x,
                      to.y, style);
}

void SvgDrawing::Curve(std::span<const SvgPoint> points, std::string_view style) {
  out_ += fmt::format("<polyline points=\"{}\" fill=\"none\" {}/>\n", Text(points), style);
}

void SvgDrawing::Area(std::span<const SvgPoint> corners, std::string_view fill) {
  out_ += fmt::format("<polygon points=\"{}\" fill=\"{}\"/>\n", Text(corners), fill);
}

void SvgDrawing::Label(SvgPoint at, std::string_view anchor, std::string_view text) {
  out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", at.x, at.y, anchor,
                      EscapeHtml(text));
}

std::string SvgDrawing::Finish(std::string_view title) const {
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"12\" "
      "role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
      size_.width, size_.height, EscapeHtml(title), out_);
}

double TickStep(double most, double unit, double ticks) {
  const double least = most / unit / ticks, power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1., 2., 5.}) {
    if (factor * power >= least) return factor * power * unit;
  }
  return 10 * power * unit;
}

}  // namespace cachalot::plan
