#include "plan/report.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/units.h"
#include "plan/report_tables.h"

namespace cachalot::plan {
namespace {

constexpr uint64_t kExactBelow = uint64_t{1} << 20;  // bytes that are written out

std::string FormatSeconds(double seconds) {
  struct Scale {
    double least, factor;
    const char* unit;
  };
  constexpr std::array kScales = {Scale{3600, 1.0 / 3600, "h"}, Scale{1, 1, "s"}, Scale{1e-3, 1e3, "ms"},
                                  Scale{0, 1e6, "us"}};
  for (const Scale& scale : kScales) {
    const double value = seconds * scale.factor;
    if (seconds >= scale.least) return fmt::format("{:.{}g} {}", value, value < 1000 ? 3 : 4, scale.unit);
  }
  return fmt::format("{} s", seconds);
}

std::string FormatRate(double rate) {
  if (rate >= 1e12) return fmt::format("{:.4g} TB/s", rate / 1e12);
  return rate >= 1e9 ? fmt::format("{:.4g} GB/s", rate / 1e9) : fmt::format("{:.4g} MB/s", rate / 1e6);
}

std::string FormatSpeed(double speed) {
  if (speed >= 100) return fmt::format("{} tokens/s", FormatCount(static_cast<uint64_t>(speed)));
  return fmt::format("{:.3g} tokens/s", speed);
}

std::string FormatInteger(uint64_t value, Unit unit) {
  if (unit == Unit::kBytes) {
    return value < kExactBelow ? FormatCount(value) + " B" : FormatBytes(value);
  }
  if (unit == Unit::kCount) return FormatCount(value);
  std::string_view name = UnitName(unit);
  if (value == 1 && name.ends_with('s')) name.remove_suffix(1);
  return fmt::format("{} {}", FormatCount(value), name);
}

std::string FormatReal(double value, Unit unit) {
  if (!std::isfinite(value)) return "-";
  switch (unit) {
    case Unit::kSeconds: return FormatSeconds(value);
    case Unit::kBytesPerSecond: return FormatRate(value);
    case Unit::kTokensPerSecond: return FormatSpeed(value);
    case Unit::kShare: return fmt::format("{:.1f} %", value * 100);
    case Unit::kCount: return fmt::format("{:.2f}", value);
    case Unit::kDollars: return fmt::format("$ {:.4g}", value);
    default: return fmt::format("{:.4g} {}", value, UnitName(unit));
  }
}

}  // namespace

Cell Text(std::string_view text) { return {std::string(text), Unit::kNone}; }

std::string_view UnitName(Unit unit) {
  switch (unit) {
    case Unit::kBytes: return "B";
    case Unit::kBytesPerSecond: return "B/s";
    case Unit::kSeconds: return "s";
    case Unit::kTokens: return "tokens";
    case Unit::kTokensPerSecond: return "tokens/s";
    case Unit::kSequences: return "sequences";
    case Unit::kDevices: return "devices";
    case Unit::kBits: return "bits";
    case Unit::kShare: return "of 1";
    case Unit::kDollars: return "$";
    case Unit::kNone:
    case Unit::kCount: break;
  }
  return "";
}

std::string FormatCell(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell.value)) return *text;
  if (const auto* integer = std::get_if<uint64_t>(&cell.value)) return FormatInteger(*integer, cell.unit);
  return FormatReal(std::get<double>(cell.value), cell.unit);
}

Report BuildReport(const Plan& plan) {
  Report report;
  report.title = fmt::format("{} on {}", plan.request.model.name, plan.request.machine.device.title);
  report.answers = Answers(plan);
  report.tables = MemoryTables(plan);
  for (Table& table : TimeTables(plan)) report.tables.push_back(std::move(table));
  for (Table& table : LoadTables(plan)) report.tables.push_back(std::move(table));
  report.chart = MemoryChart(plan);
  return report;
}

}  // namespace cachalot::plan
