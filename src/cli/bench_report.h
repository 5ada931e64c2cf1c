// BenchReport collects the rows of `cachalot bench` and prints them as a table or as JSON.
// Threads:   main thread.
// Ownership: owns its rows.
// Invariant: rates are tokens per second, medians over the repetitions.
// Cost:      none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cachalot::cli {

struct BenchRow {
  std::string test;           // "prefill" or "decode"
  uint32_t tokens = 0;        // computed by each sequence
  uint32_t depth = 0;         // tokens already in its KV
  uint32_t concurrency = 1;   // sequences at once
  std::vector<double> rates;  // one per repetition, tokens/s of all sequences together
};

struct BenchSetting {
  std::string model;
  std::string isa;
  uint64_t threads = 0;
  std::string kv_type;
};

double Median(std::vector<double> values);
std::string BenchTable(const BenchSetting& setting, const std::vector<BenchRow>& rows);
std::string BenchJson(const BenchSetting& setting, const std::vector<BenchRow>& rows);

}  // namespace cachalot::cli
