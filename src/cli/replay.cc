// `cachalot replay`: a trace through the cache's policies, or through the whole engine, without a model.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/replay_paper.h"
#include "cli/replay_report.h"
#include "cli/replay_rules.h"
#include "cli/replay_run.h"
#include "cli/replay_sweep.h"
#include "plan/report.h"
#include "sim/trace.h"

namespace cachalot::cli {
namespace {

// Counts with commas, shares and times with four digits after the point.
std::string TextOf(const Json& value) {
  if (value.is_null()) return "-";
  if (const int64_t* count = value.AsInt()) return FormatCount(static_cast<uint64_t>(*count));
  if (const std::optional<double> number = value.AsNumber()) return fmt::format("{:.4f}", *number);
  return value.AsString() != nullptr ? *value.AsString() : value.Dump();
}

// "policy  lru" and so on.
std::string Text(const Json::Object& figures) {
  size_t width = 0;
  for (const auto& [name, value] : figures) width = std::max(width, name.size());
  std::string out;
  for (const auto& [name, value] : figures) out += fmt::format("{:<{}}  {}\n", name, width, TextOf(value));
  return out;
}

// A column per figure.
std::string Table(const Json::Array& rows) {
  std::vector<size_t> widths;
  for (const Json& row : rows) {
    for (size_t i = 0; i < row.AsObject()->size(); ++i) {
      const auto& [name, value] = (*row.AsObject())[i];
      if (i == widths.size()) widths.push_back(name.size());
      widths[i] = std::max(widths[i], TextOf(value).size());
    }
  }
  std::string out;
  for (size_t r = 0; r < rows.size(); ++r) {
    const Json::Object& row = *rows[r].AsObject();
    for (size_t i = 0; r == 0 && i < row.size(); ++i) out += fmt::format("{:>{}}  ", row[i].first, widths[i]);
    if (r == 0) out += '\n';
    for (size_t i = 0; i < row.size(); ++i) out += fmt::format("{:>{}}  ", TextOf(row[i].second), widths[i]);
    out += '\n';
  }
  return out;
}

// What was replayed.
Json::Object FactsOf(const TraceSource& source, const sim::TraceFacts& read) {
  Json::Object facts;
  facts.emplace_back("trace", source.workload.empty() ? source.path : source.workload);
  facts.emplace_back("format", std::string(read.format));
  if (source.read.skip_bad) facts.emplace_back("skipped_lines", static_cast<int64_t>(read.skipped_lines));
  return facts;
}

// What is printed, and what --html gets.
struct Output {
  sim::TraceFacts trace;
  MachineFacts machine;  // empty: no engine, or as each row says
  Json::Object figures;  // of one replay
  Json::Array rows;      // of many; empty: there was one
  plan::Report report;
};

std::string Told(const TraceSource& source, const sim::TraceFacts& trace) {
  const std::string what = Describe(source, trace);
  fmt::print(stderr, "{}\n", what);
  return "Replay of " + what;
}

Result<Output> RunWhole(sim::TraceFile file, const Arguments& arguments, const ReplaySettings& settings) {
  const std::string title = Told(settings.source, file.facts);
  Output output{.trace = std::move(file.facts)};
  if (!settings.replay.sweep.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(output.rows, SweepReplay(file.trace, arguments, settings));
    output.report = SweepReport(title, output.rows);
  } else if (!settings.replay.curve.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(output.rows, CurveReplay(file.trace, settings.replay));
    output.report = CurveReport(title, output.rows);
  } else {
    CACHALOT_ASSIGN_OR_RETURN(Replayed replayed, Replay(file.trace, settings));
    output.report = ReplayReport(title, replayed);
    output.figures = std::move(replayed.figures);
    output.machine = std::move(replayed.machine);
  }
  return output;
}

// Whether requests are replayed as they come, and forgotten: not where the trace is gone over several times, where its
// end decides about its beginning, or where it is looked ahead.
bool Streams(const ReplaySettings& settings) {
  return settings.replay.sweep.empty() && settings.replay.curve.empty() && !settings.with_engine.engine &&
         settings.replay.policy != sim::kOptimumPolicy;
}

Result<Output> RunStreamed(const ReplaySettings& settings) {
  CACHALOT_ASSIGN_OR_RETURN(StreamReplayed streamed, StreamReplay(settings.source, settings.replay));
  Replayed replayed{.figures = std::move(streamed.figures), .served = {}, .machine = {}};
  plan::Report report = ReplayReport(Told(settings.source, streamed.trace), replayed);
  return Output{std::move(streamed.trace), {}, std::move(replayed.figures), {}, std::move(report)};
}

void Print(Json::Object facts, Output output, bool json) {
  if (!output.machine.step_costs.empty()) facts.emplace_back("step_costs", std::move(output.machine.step_costs));
  if (!output.machine.tier_rates.empty()) facts.emplace_back("tier_rates", std::move(output.machine.tier_rates));
  if (output.rows.empty()) {
    std::ranges::move(output.figures, std::back_inserter(facts));
    fmt::print("{}", json ? Json(std::move(facts)).Dump() + '\n' : Text(facts));
  } else if (json) {
    facts.emplace_back("rows", std::move(output.rows));
    fmt::print("{}\n", Json(std::move(facts)).Dump());
  } else {
    fmt::print("{}", Table(output.rows));
  }
}

// Also of what a sweep varies.
Status CheckTogether(const ReplaySettings& settings) {
  GivenOptions given = NamesInSweep(settings.replay.sweep);
  given.insert(settings.given.begin(), settings.given.end());
  CACHALOT_RETURN_IF_ERROR(CheckReplayOptions(given));
  constexpr std::string_view kSizes[] = {"capacity-blocks", "curve", "engine", "input-log", "print-trace"};
  if (std::ranges::any_of(kSizes, [&](std::string_view name) { return given.contains(name); })) return OkStatus();
  return Invalid(
      "expected --capacity-blocks, the blocks that the cache holds, or --curve with several such sizes, or --engine");
}

}  // namespace

Status ReplayCommand(const Arguments& arguments) {
  if (!arguments.empty() && arguments.front() == "paper") {
    return ReplayPaperCommand({arguments.begin() + 1, arguments.end()});
  }
  ReplaySettings settings;
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, ReadSettings(arguments, &settings));
  if (!go_on) return OkStatus();
  CACHALOT_RETURN_IF_ERROR(CheckTogether(settings));
  if (!settings.inputs.input_log.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(Json::Object figures, InputReplay(settings.inputs));
    fmt::print("{}", settings.replay.json ? Json(std::move(figures)).Dump() + '\n' : Text(figures));
    return OkStatus();
  }
  Output output;
  if (!settings.replay.print_trace && Streams(settings)) {
    CACHALOT_ASSIGN_OR_RETURN(output, RunStreamed(settings));
  } else {
    CACHALOT_ASSIGN_OR_RETURN(sim::TraceFile file, LoadTrace(settings.source));
    if (settings.replay.print_trace) {
      fmt::print("{}", sim::FormatTrace(file.trace));
      return OkStatus();
    }
    CACHALOT_ASSIGN_OR_RETURN(output, RunWhole(std::move(file), arguments, settings));
  }
  if (!settings.replay.html.empty()) {
    CACHALOT_RETURN_IF_ERROR(WriteFileAtomically(settings.replay.html, plan::ReportAsHtml(output.report)));
  }
  Json::Object facts = FactsOf(settings.source, output.trace);
  Print(std::move(facts), std::move(output), settings.replay.json);
  return OkStatus();
}

}  // namespace cachalot::cli
