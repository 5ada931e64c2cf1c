#include "cli/step_curve_flag.h"

#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace cachalot::cli {

Result<StepCurve> ParseStepCurve(std::string_view text) {
  const std::string_view given = text;
  StepCurve curve{};
  for (size_t i = 0; i < curve.size(); ++i) {
    const size_t comma = text.find(',');
    const std::string_view number = text.substr(0, comma);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), curve[i]);
    const bool last = i + 1 == curve.size();
    if (error != std::errc() || end != number.data() + number.size() || last != (comma == std::string_view::npos)) {
      return Invalid(fmt::format("--step-curve: expected {} numbers of seconds with commas between them, got \"{}\"",
                                 curve.size(), given));
    }
    text.remove_prefix(last ? text.size() : comma + 1);
  }
  return curve;
}

std::string FormatStepCurve(const StepCurve& curve) { return fmt::format("{}", fmt::join(curve, ",")); }

}  // namespace cachalot::cli
