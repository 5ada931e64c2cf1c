// Report is a plan as people and programs read it: answers, tables of values with units, and one chart.
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
#include <variant>
#include <vector>

#include "plan/plan.h"

namespace cachalot::plan {

enum class Unit : uint8_t {
  kNone,  // text
  kBytes,
  kBytesPerSecond,
  kSeconds,
  kTokens,
  kTokensPerSecond,
  kSequences,
  kDevices,
  kBits,
  kShare,
  kDollars,
  kCount,
};

struct Cell {
  std::variant<std::string, uint64_t, double> value;
  Unit unit = Unit::kNone;
};

Cell Text(std::string_view text);
inline Cell Bytes(uint64_t bytes) { return {bytes, Unit::kBytes}; }
inline Cell Rate(double bytes_per_second) { return {bytes_per_second, Unit::kBytesPerSecond}; }
inline Cell Seconds(double seconds) { return {seconds, Unit::kSeconds}; }
inline Cell Tokens(uint64_t tokens) { return {tokens, Unit::kTokens}; }
inline Cell Speed(double tokens_per_second) { return {tokens_per_second, Unit::kTokensPerSecond}; }
inline Cell Sequences(uint64_t sequences) { return {sequences, Unit::kSequences}; }
inline Cell DeviceCount(uint64_t devices) { return {devices, Unit::kDevices}; }
inline Cell Bits(double bits) { return {bits, Unit::kBits}; }
inline Cell Share(double share) { return {share, Unit::kShare}; }
inline Cell Dollars(double dollars) { return {dollars, Unit::kDollars}; }
inline Cell Count(uint64_t count) { return {count, Unit::kCount}; }

// "10 GiB", "327,680 B", "429 ms", "25.6 GB/s", ...
std::string FormatCell(const Cell& cell);
// "B", "s", "tokens/s", ...; empty for text.
std::string_view UnitName(Unit unit);

struct Column {
  std::string key;  // in JSON
  std::string title;
};

struct Table {
  std::string key;
  std::string title;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::vector<std::string> notes;
};

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
  Chart chart;
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
