#include <algorithm>

#include <fmt/format.h>

#include "plan/report.h"

namespace cachalot::plan {
namespace {

std::string Padded(const std::string& text, size_t width, bool right) {
  const std::string space(width - std::min(width, text.size()), ' ');
  return right ? space + text : text + space;
}

void AppendTable(const Table& table, std::string& out) {
  out += fmt::format("\n{}\n", table.title);
  std::vector<std::vector<std::string>> texts(1);
  for (const Column& column : table.columns) texts[0].push_back(column.title);
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<std::string>& line = texts.emplace_back();
    for (const Cell& cell : row) line.push_back(FormatCell(cell));
  }
  std::vector<size_t> widths(table.columns.size());
  for (const auto& line : texts) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  for (size_t r = 0; r < texts.size() && !table.rows.empty(); ++r) {
    std::string line = "  ";
    for (size_t i = 0; i < texts[r].size(); ++i) {
      const Cell& kind = table.rows[r == 0 ? 0 : r - 1][i];
      line += Padded(texts[r][i], widths[i], kind.unit != Unit::kNone) + "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  for (const std::string& note : table.notes) out += fmt::format("  ({})\n", note);
}

}  // namespace

std::string ReportAsText(const Report& report) {
  std::string out = report.title + "\n";
  for (const std::string& answer : report.answers) out += fmt::format("  {}\n", answer);
  for (const Table& table : report.tables) AppendTable(table, out);
  return out;
}

}  // namespace cachalot::plan
