// Report is a plan, or what a simulation gave, as people and programs read it: answers, tables of values with units,
// drawings.
// Threads:   plain data and pure functions.
// Ownership: owns its strings.
// Invariant: every row has as many cells as its table has columns; every number has a unit.
// Cost:      linear in the cells.
//
// BuildReport decides what is said; the three writers only how, so that no number is missing from one of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "plan/plot.h"
#include "plan/report_values.h"

namespace cachalot::plan {

// Memory against concurrency, of all devices together.
struct Chart {
  uint64_t fixed_bytes = 0;     // weights and activations of one group
  uint64_t sequence_bytes = 0;  // of one more sequence
  uint64_t most_sequences = 0;  // where the axis ends
  struct Mark {
    std::string label;
    uint64_t value = 0;
  };
  std::vector<Mark> capacities;     // bytes of 1, 2, 4, ... devices
  std::vector<Mark> concurrencies;  // sequences: the users that are asked for; mean, p50, p99, peak
};

struct Report {
  std::string title;
  std::vector<std::string> answers;
  std::vector<Table> tables;
  Chart chart;              // of a plan
  std::vector<Plot> plots;  // in HTML only
};

Report BuildReport(const Plan& plan);

std::string ReportAsText(const Report& report);
std::string ReportAsJson(const Report& report);
// One file that needs no other.
std::string ReportAsHtml(const Report& report);
// <svg>...</svg>; empty when there is nothing to draw.
std::string ChartAsSvg(const Chart& chart);
std::string EscapeHtml(std::string_view text);

}  // namespace cachalot::plan
