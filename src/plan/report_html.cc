#include <fmt/format.h>

#include "base/utf8.h"
#include "plan/report.h"

namespace cachalot::plan {
namespace {

constexpr std::string_view kStyle = R"(
body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#1a2a33}
h1{font-size:1.5em}h2{font-size:1.1em;margin:2em 0 .4em}
ul{padding-left:1.2em}table{border-collapse:collapse;width:100%}
th,td{padding:.25em .6em;border-bottom:1px solid #d7e0e4;text-align:left}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
div.wide{overflow-x:auto}p.note{color:#5b6b73;font-size:.9em;margin:.4em 0}svg{width:100%;height:auto}
)";

void AppendTable(const Table& table, std::string& out) {
  out += fmt::format("<h2>{}</h2>\n", EscapeHtml(table.title));
  if (!table.rows.empty()) {
    const auto css = [&](size_t column) { return table.rows[0][column].unit == Unit::kNone ? "" : " class=\"n\""; };
    out += "<div class=\"wide\"><table><tr>";
    for (size_t i = 0; i < table.columns.size(); ++i) {
      out += fmt::format("<th{}>{}</th>", css(i), EscapeHtml(table.columns[i].title));
    }
    out += "</tr>\n";
    for (const std::vector<Cell>& row : table.rows) {
      out += "<tr>";
      for (size_t i = 0; i < row.size(); ++i) {
        out += fmt::format("<td{}>{}</td>", css(i), EscapeHtml(FormatCell(row[i])));
      }
      out += "</tr>\n";
    }
    out += "</table></div>\n";
  }
  for (const std::string& note : table.notes) out += fmt::format("<p class=\"note\">{}</p>\n", EscapeHtml(note));
}

// Nothing where there is nothing to draw.
void AppendDrawing(std::string_view title, const std::string& svg, std::string& out) {
  if (!svg.empty()) out += fmt::format("<h2>{}</h2>\n{}", EscapeHtml(title), svg);
}

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (const char c : ReplaceInvalidUtf8(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string ReportAsHtml(const Report& report) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>{0}</title>"
      "<style>{1}</style></head><body>\n<h1>{0}</h1>\n",
      EscapeHtml(report.title), kStyle);
  std::string answers;
  for (const std::string& answer : report.answers) answers += fmt::format("<li>{}</li>\n", EscapeHtml(answer));
  if (!answers.empty()) out += fmt::format("<ul>\n{}</ul>\n", answers);
  AppendDrawing("Memory against sequences at once", ChartAsSvg(report.chart), out);
  for (const Plot& plot : report.plots) AppendDrawing(plot.title, PlotAsSvg(plot), out);
  for (const Table& table : report.tables) AppendTable(table, out);
  return out + "</body></html>\n";
}

}  // namespace cachalot::plan
