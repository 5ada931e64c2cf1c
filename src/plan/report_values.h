// Cells and tables: the values of a report with their units.
// Threads:   plain data and pure functions.
// Ownership: owns its strings.
// Invariant: every row has as many cells as its table has columns; every number has a unit.
// Cost:      linear in the cells.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

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

}  // namespace cachalot::plan
