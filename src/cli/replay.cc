// `cachalot replay`: a trace through the cache's policies, or through the whole engine, without a model.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/replay_run.h"
#include "cli/replay_sweep.h"
#include "sim/trace.h"
#include "sim/workload.h"

namespace cachalot::cli {
namespace {

// Counts with commas, shares and times with four digits after the point.
std::string TextOf(const Json& value) {
  if (const int64_t* count = value.AsInt()) return FormatCount(static_cast<uint64_t>(*count));
  if (const std::optional<double> number = value.AsNumber()) return fmt::format("{:.4f}", *number);
  return value.AsString() != nullptr ? *value.AsString() : value.Dump();
}

constexpr uint64_t kMaxTraceBytes = uint64_t{1} << 32;

Result<sim::Trace> Load(const ReplayOptions& options) {
  if (options.trace.empty() == options.workload.empty()) {
    return Invalid("expected either TRACE or --workload");
  }
  if (!options.workload.empty()) {
    return sim::MakeWorkload(
        options.workload, {.seed = options.seed, .requests = options.requests, .block_tokens = options.block_tokens});
  }
  CACHALOT_ASSIGN_OR_RETURN(const std::string text, ReadFile(options.trace, kMaxTraceBytes));
  Result<sim::Trace> trace = sim::ParseTrace(text, options.block_tokens);
  if (!trace.ok()) return trace.status().Annotate(options.trace);
  return trace;
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

}  // namespace

Status ReplayCommand(const Arguments& arguments) {
  ReplaySettings settings;
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, ReadSettings(arguments, &settings));
  if (!go_on) return OkStatus();
  CACHALOT_ASSIGN_OR_RETURN(const sim::Trace trace, Load(settings.replay));
  if (settings.replay.print_trace) {
    fmt::print("{}", sim::FormatTrace(trace));
    return OkStatus();
  }
  const std::string name = settings.replay.workload.empty() ? settings.replay.trace : settings.replay.workload;
  Json::Array rows;
  if (!settings.replay.sweep.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(rows, SweepReplay(trace, arguments, settings));
  } else if (!settings.replay.curve.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(rows, CurveReplay(trace, settings.replay));
  } else {
    CACHALOT_ASSIGN_OR_RETURN(Json::Object figures, Replay(trace, settings));
    if (settings.replay.json) figures.emplace(figures.begin(), "trace", name);
    fmt::print("{}", settings.replay.json ? Json(std::move(figures)).Dump() + '\n' : Text(figures));
    return OkStatus();
  }
  if (settings.replay.json) {
    fmt::print("{}\n", Json(Json::Object{{"trace", name}, {"rows", std::move(rows)}}).Dump());
  } else {
    fmt::print("{}", Table(rows));
  }
  return OkStatus();
}

}  // namespace cachalot::cli
