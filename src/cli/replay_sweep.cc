#include "cli/replay_sweep.h"

#include <algorithm>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/mutex.h"
#include "base/thread_pool.h"
#include "base/trimmed.h"
#include "cli/flags.h"
#include "cli/replay_run.h"
#include "cli/terminal.h"

namespace cachalot::cli {
namespace {

constexpr size_t kMostCombinations = 10'000;

using Combination = std::vector<std::pair<std::string, std::string>>;  // name, value

std::vector<std::string> Parts(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    const std::string_view part = Trimmed(text.substr(begin, end - begin));
    if (!part.empty()) parts.emplace_back(part);
    begin = end + 1;
  }
  return parts;
}

template <class Options>
bool Has(std::string_view name) {
  bool found = false;
  Options().Visit([&](std::string_view setting, auto&, std::string_view) { found = found || setting == name; });
  return found;
}

// Whether a setting of that name makes another replay, not another way to run or to show it.
bool Varies(std::string_view name, bool engine) {
  constexpr std::string_view kOther[] = {"sweep", "curve",  "sampled",     "threads", "print-trace", "html",
                                         "json",  "engine", "request-log", "series",  "series-every"};
  if (std::ranges::find(kOther, name) != std::end(kOther)) return false;
  if (ChangesTrace(name)) return true;
  return engine ? Has<EngineReplayOptions>(name) || Has<engine::EngineOptions>(name) : Has<ReplayOptions>(name);
}

Status CheckName(std::string_view name, const Combination& before, bool engine) {
  if (std::ranges::find(before, name, &Combination::value_type::first) != before.end()) {
    return Invalid(fmt::format("--sweep: {} is there twice", name));
  }
  if (Varies(name, engine)) return OkStatus();
  return Invalid(fmt::format("--sweep: {} is no setting that makes another replay {} --engine", name,
                             engine ? "with" : "without"));
}

Result<std::vector<Combination>> Combinations(std::string_view sweep, bool engine) {
  std::vector<Combination> all = {{}};
  if (Parts(sweep, ';').empty())
    return Invalid("--sweep: expected name=value,value,... between semicolons, got nothing");
  for (const std::string& part : Parts(sweep, ';')) {
    const size_t equals = part.find('=');
    const std::string name(Trimmed(std::string_view(part).substr(0, equals)));
    std::vector<std::string> values;
    if (equals != std::string::npos) values = Parts(std::string_view(part).substr(equals + 1), ',');
    if (name.empty() || values.empty()) {
      return Invalid(fmt::format("--sweep: expected name=value,value,... between semicolons, got \"{}\"", part));
    }
    CACHALOT_RETURN_IF_ERROR(CheckName(name, all.front(), engine));
    std::vector<Combination> longer;
    if (all.size() > kMostCombinations / values.size()) {
      return Invalid(fmt::format("--sweep: more than {} combinations", kMostCombinations));
    }
    for (const Combination& combination : all) {
      for (const std::string& value : values) {
        longer.push_back(combination);
        longer.back().emplace_back(name, value);
      }
    }
    all = std::move(longer);
  }
  return all;
}

Result<ReplaySettings> SettingsFor(const Arguments& arguments, const Combination& combination) {
  Arguments words = arguments;
  for (const auto& [name, value] : combination) words.push_back(fmt::format("--{}={}", name, value));
  ReplaySettings settings;
  const Result<bool> read = ReadSettings(words, &settings);
  if (!read.ok()) return read.status().Annotate("--sweep");
  return settings;
}

Result<Replayed> ReplayOf(const sim::Trace& trace, const ReplaySettings& settings, const Combination& combination) {
  if (std::ranges::none_of(combination, ChangesTrace, &Combination::value_type::first)) return Replay(trace, settings);
  CACHALOT_ASSIGN_OR_RETURN(const sim::TraceFile own, LoadTrace(settings.source));
  return Replay(own.trace, settings);
}

Result<Json::Object> RowOf(const sim::Trace& trace, const ReplaySettings& settings, const Combination& combination) {
  CACHALOT_ASSIGN_OR_RETURN(Replayed replayed, ReplayOf(trace, settings, combination));
  Json::Object row;
  for (const auto& [name, value] : combination) row.emplace_back(name, value);
  for (Json::Member& figure : replayed.figures) {
    std::string flag = figure.first;
    std::ranges::replace(flag, '_', '-');
    const bool varied = std::ranges::any_of(combination, [&](const auto& v) { return v.first == flag; });
    if (!varied) row.push_back(std::move(figure));
  }
  return row;
}

}  // namespace

Result<bool> ReadSettings(const Arguments& arguments, ReplaySettings* settings) {
  FlagSet flags("replay",
                "Replays a trace of requests through the prefix cache and an eviction policy, or through the whole "
                "engine, without a model.");
  flags.Positional("TRACE", &settings->source.path, kTraceHelp, false);
  flags.AddAll(settings->source);
  flags.AddAll(settings->replay);
  flags.AddAll(settings->with_engine);
  flags.AddAll(settings->engine);
  flags.AddAll(settings->inputs);
  for (const std::string_view output : {"html", "request-log", "series", "decision-log"}) flags.Output(output);
  CACHALOT_ASSIGN_OR_RETURN(const bool go_on, flags.Parse(arguments));
  settings->given = flags.Given();
  if (!settings->with_engine.engine) settings->given.erase("engine");
  if (!settings->replay.print_trace) settings->given.erase("print-trace");
  return go_on;
}

GivenOptions NamesInSweep(std::string_view sweep) {
  GivenOptions names;
  for (const std::string& part : Parts(sweep, ';')) {
    names.emplace(Trimmed(std::string_view(part).substr(0, part.find('='))));
  }
  return names;
}

Result<Replayed> Replay(const sim::Trace& trace, const ReplaySettings& settings) {
  if (!settings.with_engine.engine) {
    CACHALOT_ASSIGN_OR_RETURN(Json::Object figures, BlockReplay(trace, settings.replay));
    return Replayed{.figures = std::move(figures), .served = {}, .machine = {}};
  }
  CACHALOT_ASSIGN_OR_RETURN(EngineReplayed served, EngineReplay(trace, settings.with_engine, settings.engine));
  return Replayed{EngineFigures(served.report), std::move(served.report), std::move(served.machine)};
}

Result<Json::Array> SweepReplay(const sim::Trace& trace, const Arguments& arguments, const ReplaySettings& settings) {
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<Combination> combinations,
                            Combinations(settings.replay.sweep, settings.with_engine.engine));
  std::vector<ReplaySettings> each;
  for (const Combination& combination : combinations) {
    CACHALOT_ASSIGN_OR_RETURN(ReplaySettings one, SettingsFor(arguments, combination));
    each.push_back(std::move(one));
  }
  const size_t threads = settings.replay.threads == 0 ? std::thread::hardware_concurrency() : settings.replay.threads;
  ThreadPool pool(std::clamp<size_t>(threads, 1, each.size()));
  std::vector<Result<Json::Object>> rows(each.size(), Json::Object());
  ProgressBar bar("replay");
  Mutex mutex;
  size_t done = 0;
  pool.ParallelFor(each.size(), [&](size_t i) {
    rows[i] = RowOf(trace, each[i], combinations[i]);
    const MutexLock lock(mutex);
    bar.Show(static_cast<double>(++done) / static_cast<double>(each.size()));
  });
  Json::Array out;
  for (Result<Json::Object>& row : rows) {
    if (!row.ok()) return row.status();
    out.emplace_back(std::move(row).value());
  }
  return out;
}

}  // namespace cachalot::cli
