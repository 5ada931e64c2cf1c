#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/units.h"
#include "plan/report.h"

namespace cachalot::plan {
namespace {

constexpr double kWidth = 900, kHeight = 380;
constexpr double kLeft = 90, kRight = 130, kTop = 16, kBottom = 48;  // margins
constexpr double kTicks = 5;                                         // about

class Drawing {
 public:
  Drawing(const Chart& chart, double most_bytes)
      : most_sequences_(static_cast<double>(chart.most_sequences)), most_bytes_(most_bytes) {}

  double X(double sequences) const { return kLeft + sequences / most_sequences_ * (kWidth - kLeft - kRight); }
  double Y(double bytes) const { return kHeight - kBottom - bytes / most_bytes_ * (kHeight - kTop - kBottom); }

  void Line(double x1, double y1, double x2, double y2, std::string_view style) {
    out_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, style);
  }
  void Label(double x, double y, std::string_view anchor, const std::string& text) {
    out_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, EscapeHtml(text));
  }
  void Area(const std::string& points, std::string_view fill) {
    out_ += fmt::format("<polygon points=\"{}\" fill=\"{}\"/>\n", points, fill);
  }
  std::string Finish() const {
    return fmt::format(
        "<svg viewBox=\"0 0 {} {}\" xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" "
        "font-size=\"12\" role=\"img\">\n{}</svg>\n",
        kWidth, kHeight, out_);
  }

 private:
  const double most_sequences_, most_bytes_;
  std::string out_;
};

// 1, 2 or 5 times a power of ten, as many of `unit`, so that about kTicks of them reach `most`.
double TickStep(double most, double unit) {
  const double least = most / unit / kTicks, power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1., 2., 5.}) {
    if (factor * power >= least) return factor * power * unit;
  }
  return 10 * power * unit;
}

void DrawAxes(const Chart& chart, double most_bytes, Drawing& drawing) {
  const double unit = std::pow(1024, std::floor(std::log2(most_bytes) / 10));
  const double byte_step = TickStep(most_bytes, unit);
  for (int i = 0; i * byte_step <= most_bytes; ++i) {
    const double y = drawing.Y(i * byte_step);
    drawing.Line(kLeft, y, kWidth - kRight, y, "stroke=\"#e3eaed\"");
    drawing.Label(kLeft - 8, y + 4, "end", FormatBytes(static_cast<uint64_t>(std::llround(i * byte_step))));
  }
  const double last = static_cast<double>(chart.most_sequences), step = std::max(1., TickStep(last, 1));
  for (int i = 0; i * step <= last; ++i) {
    drawing.Label(drawing.X(i * step), kHeight - kBottom + 18, "middle",
                  FormatCount(static_cast<uint64_t>(std::llround(i * step))));
  }
  drawing.Label(drawing.X(last / 2), kHeight - 8, "middle", "sequences at once");
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
  Drawing drawing(chart, most);
  DrawAxes(chart, most, drawing);
  const auto area = [&](double from_left, double from_right, double to_left, double to_right) {
    return fmt::format("{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}", kLeft, drawing.Y(from_left),
                       drawing.X(last), drawing.Y(from_right), drawing.X(last), drawing.Y(to_right), kLeft,
                       drawing.Y(to_left));
  };
  drawing.Area(area(0, 0, fixed, fixed), "#9fb6c1");
  drawing.Area(area(fixed, fixed, fixed, top), "#3f9bbf");
  drawing.Label(drawing.X(last) + 8, drawing.Y(fixed / 2) + 4, "start", "weights, activations");
  drawing.Label(drawing.X(last) + 8, drawing.Y((fixed + top) / 2) + 4, "start", "KV");
  for (const Chart::Mark& capacity : chart.capacities) {
    const double bytes = static_cast<double>(capacity.value);
    if (bytes > most) break;
    drawing.Line(kLeft, drawing.Y(bytes), kWidth - kRight, drawing.Y(bytes),
                 "stroke=\"#b3261e\" stroke-dasharray=\"6 4\"");
    drawing.Label(kWidth - kRight + 8, drawing.Y(bytes) + 4, "start", capacity.label);
  }
  double label_y = kTop + 10;
  for (const Chart::Mark& mark : chart.concurrencies) {
    const double x = drawing.X(static_cast<double>(mark.value));
    drawing.Line(x, kTop, x, kHeight - kBottom, "stroke=\"#1a2a33\" stroke-dasharray=\"2 3\"");
    drawing.Label(x + 4, label_y, "start", mark.label);
    label_y += 14;
  }
  return drawing.Finish();
}

}  // namespace cachalot::plan
