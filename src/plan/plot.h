// Plot is lines over an axis, such as time or capacity, as values; PlotAsSvg draws it.
// Threads:   plain data and pure functions.
// Ownership: owns its numbers.
// Invariant: every line has as many values as the axis has places.
// Cost:      linear in the values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/report_values.h"

namespace cachalot::plan {

struct Plot {
  struct Line {
    std::string label;
    std::vector<double> values;  // at least 0; NaN: there is none, and the line has a gap
  };
  // What a value says of the axis between its place and those beside it.
  enum class Course : uint8_t {
    kStraight,  // nothing: places are joined by straight lines
    kUntil,     // it holds from the place before up to its own
    kFrom,      // it holds up to the next place
  };
  std::string title;
  std::string x_title;
  Unit x_unit = Unit::kSeconds, unit = Unit::kCount;
  Course course = Course::kStraight;
  bool stacked = false;   // each on top of those before it, as areas; NaN then counts as 0
  bool log_x = false;     // requires places above 0
  double top = 0;         // the value axis reaches this at least
  std::vector<double> x;  // ascending
  std::vector<Line> lines;
};

// <svg>...</svg>; empty with fewer than two places.
std::string PlotAsSvg(const Plot& plot);

}  // namespace cachalot::plan
