#include "cli/replay_paper.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "cli/flags.h"
#include "sim/papers/papers.h"
#include "sim/read_trace.h"

namespace cachalot::cli {
namespace {

std::string VerdictOf(const sim::PaperRow& row) {
  if (row.claim.empty()) return "-";
  return fmt::format("{}: {}", row.holds ? "holds" : "FAILS", row.claim);
}

void PrintList() {
  for (const sim::Paper& paper : sim::Papers()) {
    fmt::print("{:<15} {}; {}{}\n", paper.name, paper.title, paper.source,
               paper.trace.empty() ? "" : " (needs --trace)");
  }
}

Result<sim::Trace> LoadTrace(const std::string& path) {
  CACHALOT_ASSIGN_OR_RETURN(sim::TraceFile file, sim::ReadTraceFile(path, {.format = "mooncake"}));
  return std::move(file.trace);
}

}  // namespace

std::string PaperAsText(const sim::Paper& paper, const sim::PaperResult& result) {
  std::vector<std::array<std::string, 4>> cells = {{"figure", "ours", "paper", "verdict"}};
  for (const sim::PaperRow& row : result.rows) {
    cells.push_back({row.figure, sim::FormatFigure(row.ours, row.unit),
                     row.paper ? sim::FormatFigure(*row.paper, row.unit) : "-", VerdictOf(row)});
  }
  std::array<size_t, 3> widths{};
  for (const auto& line : cells) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::string out = fmt::format("{}\nsource   {}\nsetting  {}\ndiffers  {}\n\n", paper.title, paper.source,
                                result.setting, paper.differs);
  for (const auto& line : cells) {
    out += fmt::format("{:<{}}  {:>{}}  {:>{}}  {}\n", line[0], widths[0], line[1], widths[1], line[2], widths[2],
                       line[3]);
  }
  return out + fmt::format("\n{} of {} claims hold\n", result.holding(), result.claims());
}

std::string PaperAsJson(const sim::Paper& paper, const sim::PaperResult& result) {
  std::string out;
  JsonWriter w(&out);
  w.BeginObject().Key("paper").String(paper.name).Key("title").String(paper.title).Key("source").String(paper.source);
  w.Key("setting").String(result.setting).Key("differs").String(paper.differs).Key("rows").BeginArray();
  for (const sim::PaperRow& row : result.rows) {
    w.BeginObject().Key("figure").String(row.figure).Key("unit").String(sim::FigureUnitName(row.unit));
    w.Key("ours").Double(row.ours).Key("paper");
    row.paper ? w.Double(*row.paper) : w.Null();
    w.Key("claim");
    row.claim.empty() ? w.Null() : w.String(row.claim);
    w.Key("holds");
    row.claim.empty() ? w.Null() : w.Bool(row.holds);
    w.EndObject();
  }
  w.EndArray().Key("claims").UInt(result.claims()).Key("holding").UInt(result.holding()).EndObject();
  return out + '\n';
}

Status ReplayPaperCommand(const Arguments& arguments) {
  std::string name, trace_path;
  uint64_t seed = 1;
  bool list = false, json = false;
  FlagSet flags("replay paper", "Reproduces a figure of the literature by the server's own code.");
  flags.Positional("NAME", &name, "which; none, or --list: prints those that there are", false);
  flags.Add("list", list, "Print those that there are.");
  flags.Add("trace", trace_path, "Trace file, for those that need one.");
  flags.Add("seed", seed, "Of what is drawn by chance.");
  flags.Add("json", json, "Print JSON.");
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  if (!go_on) return OkStatus();
  if (list || name.empty()) {
    PrintList();
    return OkStatus();
  }
  CACHALOT_ASSIGN_OR_RETURN(const sim::Paper* paper, sim::FindPaper(name));
  sim::PaperInput input{.seed = seed};
  sim::Trace trace;
  if (!trace_path.empty() && paper->trace.empty()) {
    return Invalid(fmt::format("--trace has no effect with {}, which needs none", paper->name));
  }
  if (!trace_path.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(trace, LoadTrace(trace_path));
    input.trace = &trace;
  }
  CACHALOT_ASSIGN_OR_RETURN(const sim::PaperResult result, sim::RunPaper(*paper, input));
  fmt::print("{}", json ? PaperAsJson(*paper, result) : PaperAsText(*paper, result));
  if (result.holding() == result.claims()) return OkStatus();
  return Internal(fmt::format("{} of {} claims do not hold", result.claims() - result.holding(), result.claims()));
}

}  // namespace cachalot::cli
