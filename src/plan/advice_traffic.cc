#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/units.h"
#include "plan/advice_tables.h"

namespace cachalot::plan {
namespace {

using sim::Change;
using sim::CountSpread;
using sim::Divergence;
using sim::TrafficProfile;

double Part(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::vector<Cell> SpreadRow(std::string_view name, const CountSpread& spread, Cell (*unit)(uint64_t)) {
  return {Text(name), unit(spread.p50), unit(spread.p90), unit(spread.p99), unit(spread.most)};
}

std::vector<Cell> TimeRow(std::string_view name, std::vector<double> seconds) {
  std::ranges::sort(seconds);
  const auto at = [&](double share) {
    const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(seconds.size())));
    return Seconds(seconds[std::max<size_t>(rank, 1) - 1]);
  };
  return {Text(name), at(0.5), at(0.9), at(0.99), at(1)};
}

std::vector<Level> Open(const Outcome& outcome) {
  std::vector<Level> levels;
  for (const ServedSpan& span : outcome.spans) {
    if (span.served) levels.push_back({span.arrival, span.finish, 1});
  }
  return levels;
}

std::vector<Cell> LevelRow(std::string_view name, const LevelSpread& spread, Cell (*unit)(uint64_t)) {
  return {Text(name), unit(spread.p50), unit(spread.p90), unit(spread.p99), unit(spread.peak)};
}

Cell Requests(uint64_t requests) { return Count(requests); }

// Requests that come at once take no time to come.
std::string TitleOf(const AdvisedTraffic& traffic) {
  const double seconds = ToSeconds(traffic.profile.span);
  return fmt::format("Traffic of {}{}", traffic.source,
                     seconds > 0 ? fmt::format(" in {}", FormatCell(Seconds(seconds))) : ", all at once");
}

Table LengthTable(const AdvisedTraffic& traffic, const Diagnosis& diagnosis) {
  const TrafficProfile& profile = traffic.profile;
  Table table{.key = "traffic",
              .title = TitleOf(traffic),
              .columns = {{"what", "what"}, {"p50", "p50"}, {"p90", "p90"}, {"p99", "p99"}, {"most", "most"}}};
  table.rows = {SpreadRow("prompt", profile.input, Tokens), SpreadRow("answer", profile.output, Tokens),
                SpreadRow("context", profile.context, Tokens),
                LevelRow("requests under way", SpreadOf(Open(diagnosis.present)), Requests),
                LevelRow("tokens of those that generate", TokensHeld(diagnosis.present), Tokens)};
  std::vector<double> returns, idle;
  const std::vector<ServedSpan>& spans = diagnosis.present.spans;
  for (const sim::Return& r : profile.returns) {
    if (r.later >= spans.size() || !spans[r.earlier].served || !spans[r.later].served) continue;
    returns.push_back(spans[r.later].arrival - spans[r.earlier].arrival);
    idle.push_back(std::max(0.0, spans[r.later].arrival - spans[r.earlier].finish));
  }
  if (!returns.empty()) {
    table.rows.push_back(TimeRow("from a turn to the next", returns));
    table.rows.push_back(TimeRow("idle in between", idle));
  }
  table.notes = {fmt::format("{} of the requests go on from an earlier one",
                             FormatCell(Share(Part(profile.returns.size(), profile.requests))))};
  if (!traffic.skipped.empty()) table.notes.push_back(traffic.skipped);
  if (profile.sessions > 0) table.notes.push_back(fmt::format("{} sessions are named", FormatCount(profile.sessions)));
  if (profile.tenants > 0) {
    table.notes.push_back(fmt::format("{} tenants; the largest sends {} of the requests", FormatCount(profile.tenants),
                                      FormatCell(Share(profile.largest_tenant))));
  }
  table.notes.push_back("under way and idle: as simulated in the present setting");
  return table;
}

Table PrefixTable(const TrafficProfile& profile) {
  Table table{.key = "prefixes",
              .title = "Prompt tokens that an earlier request had too, if nothing were evicted",
              .columns = {{"what", "what"}, {"tokens", "tokens"}, {"share", "of prompts"}}};
  const auto row = [&](std::string_view what, uint64_t tokens) {
    table.rows.push_back({Text(what), Tokens(tokens), Share(Part(tokens, profile.prompt_tokens))});
  };
  row("in a prefix: found", profile.reusable_tokens);
  if (profile.text_known) {
    row("lost to a few changed tokens before them", profile.edited_tokens);
    row("lost to another order", profile.moved_tokens);
    row("new", profile.new_tokens());
  } else {
    row("new, or lost", profile.new_tokens());
    table.notes = {
        "this trace's hashes tell prefixes only: whether text was lost to changed tokens or another order is not "
        "known; a log of requests with text or token ids tells"};
  }
  if (profile.position_tokens > 1) {
    table.notes.push_back(fmt::format("in whole blocks of {} tokens, as the trace has them", profile.position_tokens));
  }
  return table;
}

std::string LooksLike(const Divergence& d, bool text_known) {
  if (d.change == Change::kMoved) return "the same text in another order, or behind text that is new";
  if (d.change == Change::kEdited) {
    if (d.values * 10 >= d.requests * 9) return "an id, a time, or other text that is new in each request";
    return fmt::format("one of {} values, such as a date or a name", FormatCount(d.values));
  }
  return text_known ? "new text" : "not known";
}

Table DivergenceTable(const TrafficProfile& profile) {
  Table table{.key = "divergences",
              .title = "Where requests of a kind stop being alike",
              .columns = {{"position", profile.position_tokens > 1 ? "after, in whole blocks" : "after"},
                          {"requests", "requests"},
                          {"behind", "tokens behind it"},
                          {"lost", "of them lost"},
                          {"changed", "differs"},
                          {"looks_like", "by"}}};
  for (const Divergence& d : profile.divergences) {
    table.rows.push_back({Tokens(d.position), Count(d.requests), Tokens(d.tokens_behind),
                          profile.text_known ? Tokens(d.lost_tokens) : Text("not known"),
                          d.change == Change::kEdited ? Tokens(d.changed_tokens) : Text("-"),
                          Text(LooksLike(d, profile.text_known))});
  }
  return table;
}

}  // namespace

std::vector<Table> TrafficTables(const AdvisedTraffic& traffic, const Diagnosis& diagnosis) {
  std::vector<Table> tables = {LengthTable(traffic, diagnosis), PrefixTable(traffic.profile)};
  if (!traffic.profile.divergences.empty()) tables.push_back(DivergenceTable(traffic.profile));
  return tables;
}

}  // namespace cachalot::plan
