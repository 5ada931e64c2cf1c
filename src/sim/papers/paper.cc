#include "sim/papers/paper.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/units.h"

namespace cachalot::sim {

std::string FormatFigure(double value, FigureUnit unit) {
  switch (unit) {
    case FigureUnit::kCount: return FormatCount(static_cast<uint64_t>(std::llround(value)));
    case FigureUnit::kPercent: return fmt::format("{:.1f} %", value * 100);
    case FigureUnit::kRate: return fmt::format("{:.4f}", value);
    case FigureUnit::kSeconds: return fmt::format("{:.4f} s", value);
    case FigureUnit::kTimes: return fmt::format("{:.2f} x", value);
  }
  return {};
}

std::string_view FigureUnitName(FigureUnit unit) {
  constexpr std::array<std::string_view, 5> kNames = {"count", "share", "share", "seconds", "times"};
  return kNames[static_cast<size_t>(unit)];
}

PaperRow EqualRow(std::string figure, FigureUnit unit, double ours, double paper) {
  const bool equal = FormatFigure(ours, unit) == FormatFigure(paper, unit);
  return {std::move(figure), unit, ours, paper, "equal", equal};
}

PaperRow NearRow(std::string figure, FigureUnit unit, double ours, double paper, double tolerance) {
  std::string claim = unit == FigureUnit::kPercent ? fmt::format("within {:.1f} points", tolerance * 100)
                                                   : fmt::format("within {}", FormatFigure(tolerance, unit));
  return {std::move(figure), unit, ours, paper, std::move(claim), std::abs(ours - paper) <= tolerance};
}

PaperRow ClaimRow(std::string figure, FigureUnit unit, double ours, std::string claim, bool holds,
                  std::optional<double> paper) {
  return {std::move(figure), unit, ours, paper, std::move(claim), holds};
}

PaperRow ShownRow(std::string figure, FigureUnit unit, double ours, std::optional<double> paper) {
  return {std::move(figure), unit, ours, paper, {}, true};
}

uint64_t PaperResult::claims() const {
  return static_cast<uint64_t>(std::ranges::count_if(rows, [](const PaperRow& row) { return !row.claim.empty(); }));
}

uint64_t PaperResult::holding() const {
  return static_cast<uint64_t>(
      std::ranges::count_if(rows, [](const PaperRow& row) { return !row.claim.empty() && row.holds; }));
}

}  // namespace cachalot::sim
