#include "cli/bench_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/json.h"

namespace cachalot::cli {

double Median(std::vector<double> values) {
  CACHALOT_CHECK(!values.empty());
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string BenchTable(const BenchSetting& setting, const std::vector<BenchRow>& rows) {
  std::string out = fmt::format("{}, kernels {}, {} thread(s), KV {}\n\n", setting.model, setting.isa, setting.threads,
                                setting.kv_type);
  out += "| test | tokens | depth | sequences | tokens/s | least | most |\n";
  out += "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const BenchRow& row : rows) {
    out += fmt::format("| {} | {} | {} | {} | {:.1f} | {:.1f} | {:.1f} |\n", row.test, row.tokens, row.depth,
                       row.concurrency, Median(row.rates), *std::ranges::min_element(row.rates),
                       *std::ranges::max_element(row.rates));
  }
  return out;
}

std::string BenchJson(const BenchSetting& setting, const std::vector<BenchRow>& rows) {
  std::string out;
  JsonWriter w(&out);
  w.BeginObject();
  w.Key("model").String(setting.model);
  w.Key("isa").String(setting.isa);
  w.Key("threads").UInt(setting.threads);
  w.Key("kv_type").String(setting.kv_type);
  w.Key("rows").BeginArray();
  for (const BenchRow& row : rows) {
    w.BeginObject();
    w.Key("test").String(row.test);
    w.Key("tokens").UInt(row.tokens);
    w.Key("depth").UInt(row.depth);
    w.Key("concurrency").UInt(row.concurrency);
    w.Key("tokens_per_second").Double(Median(row.rates));
    w.Key("repetitions").BeginArray();
    for (double rate : row.rates) w.Double(rate);
    w.EndArray().EndObject();
  }
  w.EndArray().EndObject();
  return out + "\n";
}

}  // namespace cachalot::cli
