#include "base/json.h"
#include "plan/report.h"

namespace cachalot::plan {
namespace {

void AppendCell(const Cell& cell, JsonWriter& w) {
  if (const auto* text = std::get_if<std::string>(&cell.value)) {
    w.String(*text);
    return;
  }
  w.BeginObject();
  w.Key("value");
  if (const auto* integer = std::get_if<uint64_t>(&cell.value)) {
    w.UInt(*integer);
  } else {
    w.Double(std::get<double>(cell.value));
  }
  w.Key("unit").String(UnitName(cell.unit));
  w.EndObject();
}

void AppendTable(const Table& table, JsonWriter& w) {
  w.BeginObject();
  w.Key("title").String(table.title);
  w.Key("rows").BeginArray();
  for (const std::vector<Cell>& row : table.rows) {
    w.BeginObject();
    for (size_t i = 0; i < row.size(); ++i) {
      w.Key(table.columns[i].key);
      AppendCell(row[i], w);
    }
    w.EndObject();
  }
  w.EndArray();
  w.Key("notes").BeginArray();
  for (const std::string& note : table.notes) w.String(note);
  w.EndArray();
  w.EndObject();
}

}  // namespace

std::string ReportAsJson(const Report& report) {
  std::string out;
  JsonWriter w(&out);
  w.BeginObject();
  w.Key("title").String(report.title);
  w.Key("answers").BeginArray();
  for (const std::string& answer : report.answers) w.String(answer);
  w.EndArray();
  w.Key("tables").BeginObject();
  for (const Table& table : report.tables) {
    w.Key(table.key);
    AppendTable(table, w);
  }
  w.EndObject();
  w.EndObject();
  return out + "\n";
}

}  // namespace cachalot::plan
