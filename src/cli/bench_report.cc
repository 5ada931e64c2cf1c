#include "cli/bench_report.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "base/json.h"
#include "base/units.h"

namespace cachalot::cli {
namespace {

using Cells = std::vector<std::string>;

// The columns of every format but JSON; the first two are words, the others numbers.
const Cells kColumns = {"test",    "shared",    "prompt",   "output", "depth", "sequences",
                        "threads", "step rows", "tokens/s", "least",  "most"};
constexpr size_t kWordColumns = 2;

Cells CellsOf(const BenchRow& row) {
  const auto [least, most] = std::ranges::minmax(row.rates);
  return {BenchTestName(row.test),      row.shared ? "yes" : "no",     std::to_string(row.prompt),
          std::to_string(row.output),   std::to_string(row.depth),     std::to_string(row.sequences),
          std::to_string(row.threads),  std::to_string(row.step_rows), fmt::format("{:.2f}", Median(row.rates)),
          fmt::format("{:.2f}", least), fmt::format("{:.2f}", most)};
}

std::string Heading(const BenchSetting& setting) {
  return fmt::format("{}, {} of weights, kernels {}, KV {}, loaded in {:.2f} s\n\n", setting.model,
                     FormatBytes(setting.weight_bytes), setting.isa, setting.kv_type, setting.load_seconds);
}

std::string Table(const BenchSetting& setting, const std::vector<Cells>& lines) {
  std::string out = Heading(setting);
  std::vector<size_t> widths(kColumns.size());
  for (const Cells& line : lines) {
    for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  }
  for (const Cells& line : lines) {
    for (size_t c = 0; c < line.size(); ++c) {
      out +=
          c < kWordColumns ? fmt::format("{:<{}}  ", line[c], widths[c]) : fmt::format("{:>{}}  ", line[c], widths[c]);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

std::string Markdown(const BenchSetting& setting, const std::vector<Cells>& lines) {
  std::string out = Heading(setting);
  for (size_t i = 0; i < lines.size(); ++i) {
    out += fmt::format("| {} |\n", fmt::join(lines[i], " | "));
    if (i > 0) continue;
    out += "|";
    for (size_t c = 0; c < kColumns.size(); ++c) out += c < kWordColumns ? " --- |" : " ---: |";
    out += '\n';
  }
  return out;
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string Csv(const BenchSetting& setting, const std::vector<Cells>& lines) {
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Cells setting_cells =
        i == 0 ? Cells{"model", "isa", "kv type"} : Cells{CsvField(setting.model), setting.isa, setting.kv_type};
    out += fmt::format("{},{}\n", fmt::join(setting_cells, ","), fmt::join(lines[i], ","));
  }
  return out;
}

std::string AsJson(const BenchSetting& setting, const std::vector<BenchRow>& rows) {
  std::string out;
  JsonWriter w(&out);
  w.BeginObject();
  w.Key("model").String(setting.model);
  w.Key("weight_bytes").UInt(setting.weight_bytes);
  w.Key("isa").String(setting.isa);
  w.Key("kv_type").String(setting.kv_type);
  w.Key("load_seconds").Double(setting.load_seconds);
  w.Key("rows").BeginArray();
  for (const BenchRow& row : rows) {
    w.BeginObject();
    w.Key("test").String(BenchTestName(row.test));
    w.Key("prompt").UInt(row.prompt);
    w.Key("output").UInt(row.output);
    w.Key("depth").UInt(row.depth);
    w.Key("sequences").UInt(row.sequences);
    w.Key("shared").Bool(row.shared);
    w.Key("threads").UInt(row.threads);
    w.Key("step_rows").UInt(row.step_rows);
    w.Key("tokens_per_second").Double(Median(row.rates));
    w.Key("repetitions").BeginArray();
    for (const double rate : row.rates) w.Double(rate);
    w.EndArray().EndObject();
  }
  w.EndArray().EndObject();
  return out + "\n";
}

}  // namespace

Result<BenchFormat> ParseBenchFormat(const std::string& name) {
  if (name == "table") return BenchFormat::kTable;
  if (name == "markdown") return BenchFormat::kMarkdown;
  if (name == "csv") return BenchFormat::kCsv;
  if (name == "json") return BenchFormat::kJson;
  return Invalid(fmt::format("--format: expected table, markdown, csv or json, got \"{}\"", name));
}

double Median(std::vector<double> values) {
  CACHALOT_CHECK(!values.empty());
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string BenchReport(BenchFormat format, const BenchSetting& setting, const std::vector<BenchRow>& rows) {
  std::vector<Cells> lines = {kColumns};
  for (const BenchRow& row : rows) lines.push_back(CellsOf(row));
  switch (format) {
    case BenchFormat::kTable: return Table(setting, lines);
    case BenchFormat::kMarkdown: return Markdown(setting, lines);
    case BenchFormat::kCsv: return Csv(setting, lines);
    case BenchFormat::kJson: return AsJson(setting, rows);
  }
  return {};
}

}  // namespace cachalot::cli
