// SvgDrawing draws lines, areas and labels of a chart with two axes.
// Threads:   one thread.
// Ownership: owns its text.
// Invariant: all text is escaped; what is drawn refers to nothing outside.
// Cost:      linear in what is drawn.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cachalot::plan {

struct SvgPoint {
  double x = 0, y = 0;  // in the drawing's own units, y downward
};

class SvgDrawing {
 public:
  struct Size {
    double width = 900, height = 380;
    double left = 90, right = 130, top = 16, bottom = 48;  // margins
  };
  // What the axes' ends stand for.
  struct Axes {
    double x_least = 0, x_most = 1, y_most = 1;
    bool log_x = false;  // requires x_least > 0
  };

  SvgDrawing(const Size& size, const Axes& axes) : size_(size), axes_(axes) {}

  const Size& size() const { return size_; }
  double X(double value) const;
  double Y(double value) const;
  double right_edge() const { return size_.width - size_.right; }
  double bottom_edge() const { return size_.height - size_.bottom; }

  // `style`: attributes of SVG.
  void Line(SvgPoint from, SvgPoint to, std::string_view style);
  void Curve(std::span<const SvgPoint> points, std::string_view style);
  void Area(std::span<const SvgPoint> corners, std::string_view fill);
  // anchor: "start", "middle" or "end".
  void Label(SvgPoint at, std::string_view anchor, std::string_view text);
  // <svg>...</svg>, that screen readers call by its title.
  std::string Finish(std::string_view title) const;

 private:
  const Size size_;
  const Axes axes_;
  std::string out_;
};

// 1, 2 or 5 times a power of ten, as many of `unit`, so that about so many of them reach `most`. Requires most > 0.
double TickStep(double most, double unit, double ticks = 5);

}  // namespace cachalot::plan
