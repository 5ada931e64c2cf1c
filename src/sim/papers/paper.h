// PaperRow is one figure of the literature beside ours, and whether the two agree; PaperResult is a whole table of
// them.
// Threads:   plain data and pure functions.
// Ownership: none.
// Invariant: a row that claims something says what, in words that a reader can check against its numbers.
// Cost:      none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace cachalot::sim {

struct Trace;

// How a figure is printed, and so what "equal" means.
enum class FigureUnit : uint8_t {
  kCount = 0,    // 1,065
  kPercent = 1,  // of a share: 20.4 %
  kRate = 2,     // of a share: 0.2116
  kSeconds = 3,  // 0.0177 s
  kTimes = 4,    // 1.53 x
};
std::string_view FigureUnitName(FigureUnit unit);

struct PaperRow {
  std::string figure;  // what it is of
  FigureUnit unit = FigureUnit::kCount;
  double ours = 0;
  std::optional<double> paper;  // nothing: it names none
  std::string claim;            // e.g. "equal", "within 2.0 points"; empty: none, the row stands for comparison
  bool holds = true;
};

// Equal as printed.
PaperRow EqualRow(std::string figure, FigureUnit unit, double ours, double paper);
// No further from the paper's than this.
PaperRow NearRow(std::string figure, FigureUnit unit, double ours, double paper, double tolerance);
// Something else that must hold, in words.
PaperRow ClaimRow(std::string figure, FigureUnit unit, double ours, std::string claim, bool holds,
                  std::optional<double> paper = std::nullopt);
// Claims nothing.
PaperRow ShownRow(std::string figure, FigureUnit unit, double ours, std::optional<double> paper = std::nullopt);

std::string FormatFigure(double value, FigureUnit unit);

struct PaperResult {
  std::string setting;  // what was run, and what had to be assumed
  std::vector<PaperRow> rows;

  uint64_t claims() const;
  uint64_t holding() const;  // of them
};

struct PaperInput {
  uint64_t seed = 1;
  const Trace* trace = nullptr;  // for those that need one
};

// One that can be reproduced.
struct Paper {
  std::string_view name;
  std::string_view title;
  std::string_view source;   // who published it
  std::string_view differs;  // what is not as it was there, in a sentence
  std::string_view trace;    // the one that it needs; empty: none
  Result<PaperResult> (*run)(const PaperInput& input);
};

}  // namespace cachalot::sim
