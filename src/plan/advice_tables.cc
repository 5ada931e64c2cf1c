#include "plan/advice_tables.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"

namespace cachalot::plan {
namespace {

Cell Times(double gain) { return {gain, Unit::kCount}; }

const Outcome& WithRoom(const Diagnosis& diagnosis) {
  return std::ranges::find(diagnosis.probes, Constraint::kCapacity, &Probe::constraint)->outcome;
}

Table CapacityTable(const Present& present, const Diagnosis& diagnosis) {
  const Setting& now = present.setting;
  const LevelSpread open = TokensHeld(WithRoom(diagnosis));
  const uint64_t holds = TokensOf(now);
  const double token_bytes =
      holds == 0 ? 0 : static_cast<double>(now.slots * now.slot_bytes) / static_cast<double>(holds);
  Table table{.key = "capacity",
              .title = "Capacity: does it fit?",
              .columns = {{"what", "what"}, {"tokens", "tokens"}, {"kv", "KV"}}};
  const auto row = [&](std::string_view what, uint64_t tokens) {
    table.rows.push_back(
        {Text(what), Tokens(tokens), Bytes(static_cast<uint64_t>(static_cast<double>(tokens) * token_bytes))});
  };
  row("the pool holds", holds);
  row("had it room for all: held at p50", open.p50);
  row("at p99", open.p99);
  row("at the peak", open.peak);
  if (const std::optional<LevelSpread> promised = TokensPromised(now, WithRoom(diagnosis))) {
    row("set aside for what they ask for, at p99", promised->p99);
    row("at the peak", promised->peak);
  }
  row("all text of the trace, each prefix once", present.traffic.distinct_tokens);
  table.notes = {"what requests share counts for each of them, but in the last row"};
  return table;
}

Table CostTable(const Diagnosis& diagnosis) {
  Table table{.key = "cost",
              .title = "Cost: what does it take?",
              .columns = {{"setting", "setting"},
                          {"machine", "machine time per request"},
                          {"busy", "busy"},
                          {"hits", "hit rate"},
                          {"recomputed", "computed again"}}};
  const auto row = [&](std::string_view what, const Outcome& outcome) {
    const double each = outcome.served == 0 ? 0 : outcome.compute_seconds / static_cast<double>(outcome.served);
    table.rows.push_back(
        {Text(what), Seconds(each), Share(outcome.busy), Share(outcome.hit_rate), Share(outcome.recomputed)});
  };
  row("present", diagnosis.present);
  row("with room for all", WithRoom(diagnosis));
  return table;
}

std::vector<Column> OutcomeColumns() {
  return {{"served", "served"},
          {"throughput", "answers"},
          {"request", "per request"},
          {"ttft_p99", "TTFT p99"},
          {"hits", "hit rate"}};
}

std::vector<Cell> OutcomeCells(const Outcome& outcome) {
  return {
      Share(outcome.requests == 0 ? 0
                                  : static_cast<double>(outcome.within_target) / static_cast<double>(outcome.requests)),
      Speed(outcome.tokens_per_second), Seconds(outcome.e2e_mean_seconds), Seconds(outcome.ttft_p99_seconds),
      Share(outcome.hit_rate)};
}

void Append(std::vector<Cell> cells, std::vector<Cell>* row) {
  for (Cell& cell : cells) row->push_back(std::move(cell));
}

Table ConstraintTable(const Diagnosis& diagnosis) {
  Table table{.key = "constraints",
              .title = "What binds: each constraint taken away by itself",
              .columns = {{"constraint", "constraint"}, {"change", "change"}, {"gain", "times as good"}}};
  for (Column& column : OutcomeColumns()) table.columns.push_back(std::move(column));
  const auto row = [&](std::string_view name, std::string_view change, double gain, const Outcome& outcome) {
    std::vector<Cell> cells = {Text(name), Text(change), Times(gain)};
    Append(OutcomeCells(outcome), &cells);
    table.rows.push_back(std::move(cells));
  };
  row("-", "present", 1, diagnosis.present);
  row("-", "each request alone", GainOf(diagnosis.present, diagnosis.alone), diagnosis.alone);
  for (const Probe& probe : diagnosis.probes) {
    row(kConstraintNames[static_cast<size_t>(probe.constraint)], probe.what, probe.gain, probe.outcome);
  }
  return table;
}

Table LeverTable(const Diagnosis& diagnosis) {
  Table table{.key = "levers",
              .title = "What helps, in the order in which to try it",
              .columns = {{"lever", "lever"}, {"gain", "times as good"}}};
  for (Column& column : OutcomeColumns()) table.columns.push_back(std::move(column));
  for (Column column : {Column{"price", "takes"}, {"risk", "risk to answers"}, {"flags", "flags"}, {"note", "note"}}) {
    table.columns.push_back(std::move(column));
  }
  const auto row = [&](std::string_view name, double gain, const Outcome& outcome, const Lever* lever) {
    std::vector<Cell> cells = {Text(name), Times(gain)};
    Append(OutcomeCells(outcome), &cells);
    for (const std::string_view text :
         {lever == nullptr ? "" : NameOf(lever->price), lever == nullptr ? "" : NameOf(lever->risk),
          lever == nullptr ? std::string_view() : std::string_view(lever->flags),
          lever == nullptr ? std::string_view() : std::string_view(lever->note)}) {
      cells.push_back(Text(text));
    }
    table.rows.push_back(std::move(cells));
  };
  row("present", 1, diagnosis.present, nullptr);
  for (const Advice& advice : diagnosis.advice) row(advice.lever.name, advice.gain, advice.after, &advice.lever);
  return table;
}

Table CreditTable(const Diagnosis& diagnosis) {
  Table table{.key = "in_use",
              .title = "What is in use already, and what it would be without",
              .columns = {{"lever", "in use"}, {"gain", "times as good with it"}}};
  for (Column& column : OutcomeColumns()) table.columns.push_back(std::move(column));
  table.columns.push_back({"note", "note"});
  for (const Advice& credit : diagnosis.credits) {
    std::vector<Cell> cells = {Text(credit.lever.name), Times(credit.gain)};
    Append(OutcomeCells(credit.after), &cells);
    cells.push_back(Text(credit.lever.note));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Table RejectedTable(const Diagnosis& diagnosis) {
  Table table{.key = "no_help",
              .title = "What does not help",
              .columns = {{"lever", "lever"}, {"gain", "times as good"}, {"flags", "flags"}}};
  for (const Advice& advice : diagnosis.rejected) {
    table.rows.push_back({Text(advice.lever.name), Times(advice.gain), Text(advice.lever.flags)});
  }
  return table;
}

}  // namespace

kv::KvGeometry GeometryOf(const Setting& setting) {
  const Result<KvLayout> layout = PlanKvLayout(setting.kv, setting.context_tokens);
  kv::KvGeometry geometry{.block_tokens = setting.kv.block_tokens, .windows = {}, .slots = 0};
  if (layout.ok()) geometry = kv::GeometryOf(*layout, 0);
  return geometry;
}

std::vector<Table> AdviceTables(const AdvisedTraffic& traffic, const Present& present, const Diagnosis& diagnosis) {
  std::vector<Table> tables = {CapacityTable(present, diagnosis), CostTable(diagnosis), ConstraintTable(diagnosis)};
  if (!diagnosis.advice.empty()) tables.push_back(LeverTable(diagnosis));
  if (!diagnosis.credits.empty()) tables.push_back(CreditTable(diagnosis));
  if (!diagnosis.rejected.empty()) tables.push_back(RejectedTable(diagnosis));
  std::vector<std::string>& notes = tables[2].notes;
  notes.push_back(fmt::format("the first {} requests, run by the server's engine in virtual time",
                              FormatCount(traffic.simulated_requests)));
  notes.push_back(traffic.ttft_target > 0
                      ? fmt::format("served: with the first token within {}", FormatCell(Seconds(traffic.ttft_target)))
                      : "times as good: more requests served, or else the mean time per request");
  if (present.setting.disk_slots > 0) {
    notes.push_back(fmt::format("tiers: {}", DiskRateText(present.request.machine, present.setting)));
  }
  return tables;
}

}  // namespace cachalot::plan
