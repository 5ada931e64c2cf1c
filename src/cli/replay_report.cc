#include "cli/replay_report.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/replay_plots.h"

namespace cachalot::cli {
namespace {

using plan::Cell;
using plan::Table;
using plan::Unit;

// By what the names of figures say of their units.
Unit UnitOf(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (name.ends_with("_seconds")) return Unit::kSeconds;
  if (name.ends_with("tokens_per_second")) return Unit::kTokensPerSecond;
  if (name.ends_with("_rate") || name.starts_with("mean_")) return Unit::kShare;
  if (has("bytes_") || name.ends_with("_bytes")) return Unit::kBytes;
  if (has("tokens") && name != "block_tokens") return Unit::kTokens;
  return Unit::kCount;
}

Cell CellOf(std::string_view name, const Json& value) {
  if (value.is_null()) return plan::Text("-");
  if (const std::string* text = value.AsString()) return plan::Text(*text);
  if (const int64_t* count = value.AsInt()) return {static_cast<uint64_t>(std::max<int64_t>(*count, 0)), UnitOf(name)};
  if (const std::optional<double> number = value.AsNumber()) return {*number, UnitOf(name)};
  return plan::Text(value.Dump());
}

Table FigureTable(const Json::Object& figures) {
  Table table{.key = "figures", .title = "All figures", .columns = {{"name", "figure"}, {"value", "value"}}};
  for (const auto& [name, value] : figures) {
    table.rows.push_back({plan::Text(name), CellOf(name, value)});
  }
  return table;
}

Table RowTable(std::string key, std::string title, const Json::Array& rows,
               const std::function<bool(const Json::Member&)>& wanted) {
  Table table{.key = std::move(key), .title = std::move(title)};
  for (const Json& row : rows) {
    std::vector<Cell>& cells = table.rows.emplace_back();
    for (const Json::Member& member : *row.AsObject()) {
      if (!wanted(member)) continue;
      if (table.rows.size() == 1) table.columns.push_back({member.first, member.first});
      cells.push_back(CellOf(member.first, member.second));
    }
  }
  return table;
}

// What was swept, and what one looks for first.
bool IsHeadline(const Json::Member& member) {
  constexpr std::string_view kNames[] = {"served_requests",  "refused_requests", "token_hit_rate",
                                         "block_hit_rate",   "saved_work_rate",  "output_tokens_per_second",
                                         "ttft_p50_seconds", "ttft_p99_seconds", "e2e_p50_seconds",
                                         "preemptions",      "refault_tokens"};
  return member.second.AsString() != nullptr || std::ranges::find(kNames, member.first) != std::end(kNames);
}

Table PercentileTable(const sim::TraceServingReport& served) {
  Table table{
      .key = "percentiles",
      .title = "Times",
      .columns = {
          {"what", "what"}, {"p50", "p50"}, {"p90", "p90"}, {"p99", "p99"}, {"mean", "mean"}, {"most", "most"}}};
  const auto row = [&](std::string_view what, const DurationHistogram& times) {
    if (times.count() == 0) return;
    std::vector<Cell> cells = {plan::Text(what)};
    for (const double share : {0.5, 0.9, 0.99}) cells.push_back(plan::Seconds(ToSeconds(times.Quantile(share))));
    cells.push_back(plan::Seconds(times.MeanSeconds()));
    cells.push_back(plan::Seconds(ToSeconds(times.max())));
    table.rows.push_back(std::move(cells));
  };
  row("to the first token", served.ttft);
  row("between tokens", served.itl);
  row("of a request", served.e2e);
  return table;
}

double Ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}
std::string Percent(double share) { return plan::FormatCell(plan::Share(share)); }

std::vector<std::string> AnswersOf(const sim::TraceServingReport& served) {
  const double seconds = ToSeconds(served.duration);
  const uint64_t lower = served.host_tokens + served.disk_tokens;
  const engine::EngineStats& stats = served.last;
  std::vector<std::string> answers;
  answers.push_back(fmt::format(
      "{} of {} requests were served in {}; {} were generated.", FormatCount(served.served),
      FormatCount(served.served + served.refused), plan::FormatCell(plan::Seconds(seconds)),
      plan::FormatCell(plan::Speed(seconds > 0 ? static_cast<double>(served.output_tokens) / seconds : 0))));
  if (!served.first_refusal.empty()) {
    answers.push_back(fmt::format("The first of the {} that were refused, because: {}.", FormatCount(served.refused),
                                  served.first_refusal));
  }
  if (served.served == 0) return answers;
  std::string hits =
      fmt::format("{} of prompt tokens were found", Percent(Ratio(served.cached_tokens, served.prompt_tokens)));
  if (lower > 0) {
    hits += fmt::format(" ({} in the pool, {} in host memory, {} on disk)",
                        Percent(Ratio(served.cached_tokens - lower, served.prompt_tokens)),
                        Percent(Ratio(served.host_tokens, served.prompt_tokens)),
                        Percent(Ratio(served.disk_tokens, served.prompt_tokens)));
  }
  answers.push_back(fmt::format("{}; {} of what was computed had been computed before.", hits,
                                Percent(Ratio(stats.refault_tokens, stats.tokens_computed))));
  answers.push_back(fmt::format(
      "The pool was in use by {} on average; some requests waited for KV {} of the time, and {} preempted.",
      Percent(served.mean_in_use), Percent(seconds > 0 ? ToSeconds(stats.pressure.some.total) / seconds : 0),
      stats.preemptions == 0   ? "none was"
      : stats.preemptions == 1 ? "one was"
                               : FormatCount(stats.preemptions) + " were"));
  return answers;
}

}  // namespace

plan::Report ReplayReport(const std::string& title, const Replayed& replayed) {
  plan::Report report;
  report.title = title;
  if (replayed.served) {
    report.answers = AnswersOf(*replayed.served);
    report.plots = SeriesPlots(replayed.served->samples);
    if (replayed.served->served > 0) report.tables.push_back(PercentileTable(*replayed.served));
  }
  report.tables.push_back(FigureTable(replayed.figures));
  return report;
}

plan::Report CurveReport(const std::string& title, const Json::Array& rows) {
  plan::Report report;
  report.title = title;
  report.plots.push_back(CurvePlot(rows));
  report.tables.push_back(RowTable("curve", "Hit rates", rows, [](const Json::Member&) { return true; }));
  return report;
}

plan::Report SweepReport(const std::string& title, const Json::Array& rows) {
  plan::Report report;
  report.title = title;
  report.plots = SweepPlots(rows);
  report.tables.push_back(RowTable("sweep", "Results", rows, IsHeadline));
  report.tables.push_back(RowTable("figures", "All figures", rows, [](const Json::Member&) { return true; }));
  return report;
}

}  // namespace cachalot::cli
