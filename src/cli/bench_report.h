// BenchReport prints the rows of `cachalot bench` in one of its formats.
// Threads:   pure functions over values.
// Ownership: none.
// Invariant: every format holds every row, and the median, least and most of its rates.
// Cost:      none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/bench_plan.h"

namespace cachalot::cli {

// What holds for all rows.
struct BenchSetting {
  std::string model;
  std::string isa;
  std::string kv_type;
  uint64_t weight_bytes = 0;
  double load_seconds = 0;  // from the start of the command to the first step
};

enum class BenchFormat : uint8_t { kTable, kMarkdown, kCsv, kJson };
Result<BenchFormat> ParseBenchFormat(const std::string& name);

double Median(std::vector<double> values);
std::string BenchReport(BenchFormat format, const BenchSetting& setting, const std::vector<BenchRow>& rows);

}  // namespace cachalot::cli
