#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "plan/decoding.h"
#include "plan/moving.h"
#include "plan/report_tables.h"

namespace cachalot::plan {
namespace {

std::string ComputingOf(const Machine& machine) {
  if (!machine.measured) {
    return fmt::format("computing at {:.0f} % of the stated arithmetic", machine.compute_share * 100);
  }
  return machine.measured_by.empty() ? "computing as calibrated"
                                     : fmt::format("computing as calibrated ({})", machine.measured_by);
}

constexpr double kCheap = 0.1, kCostly = 0.5;  // shares of a step that all-reduces take

Table MoveTable(const Plan& plan) {
  const Machine& machine = plan.request.machine;
  const uint64_t tokens = plan.request.context_tokens;
  Table table{.key = "moving",
              .title = fmt::format("Moving a session of {} tokens, or computing it again", FormatCount(tokens)),
              .columns = {{"link", "over"},
                          {"rate", "usable rate"},
                          {"bytes", "each device moves"},
                          {"load", "load"},
                          {"recompute", "recompute"},
                          {"both", "both at once"},
                          {"choice", "the server would"},
                          {"break_even", "loading is sooner from"}}};
  const MovedSession session = SessionOf(plan.request.model, plan.request.weight_format, plan.group.sizes, machine);
  const uint64_t limit = plan.request.model.context_tokens == 0 ? kMaxTokens : plan.request.model.context_tokens;
  for (const UsableLink& link : UsableLinks(machine)) {
    const Move move = PlanMove(session, link.rate, tokens, limit);
    table.rows.push_back({Text(link.title), Rate(link.rate.bytes_per_second), Bytes(move.bytes),
                          Seconds(move.load_seconds), Seconds(move.recompute_seconds),
                          move.both_seconds ? Seconds(*move.both_seconds) : Text("-"), Text(move.choice),
                          move.break_even_tokens ? Tokens(*move.break_even_tokens) : Text("never within the context")});
  }
  const bool measured = std::ranges::any_of(machine.tiers, [](const auto& ways) { return ways.front().has_value(); });
  table.notes = {fmt::format("{:.0f} % of a link's stated rate{}; {}.", machine.link_share * 100,
                             measured ? ", but of those that were measured what was" : "", ComputingOf(machine)),
                 "What the server would do is its own policy's choice for a session that comes back alone."};
  return table;
}

Table DecodeTable(const Plan& plan) {
  const Machine& machine = plan.request.machine;
  Table table{.key = "decoding",
              .title = fmt::format("Ceiling of decode speed at {} tokens, by where attention reads KV",
                                   FormatCount(plan.request.context_tokens)),
              .columns = {{"tier", "KV in"},
                          {"rate", "usable rate"},
                          {"kv_read", "to read one sequence's KV"},
                          {"kv_only", "if only KV were read"},
                          {"one", "one sequence, weights too"}}};
  const DecodedModel model{plan.group.shard.shape, plan.request.weight_format, plan.group.sizes};
  const auto add = [&](std::string_view tier, double rate) {
    const DecodeStep step = PlanDecode(model, machine, rate, 1, plan.request.context_tokens);
    table.rows.push_back({Text(tier), Rate(rate), Seconds(step.kv_seconds),
                          step.kv_seconds > 0 ? Speed(1 / step.kv_seconds) : Text("-"), Speed(1 / step.seconds())});
  };
  add("device memory", MemoryRate(machine));
  for (const UsableLink& link : UsableLinks(machine)) {
    if (link.kind != LinkKind::kDevice) add(link.title, link.rate.bytes_per_second);
  }
  table.notes = {"Weights are always read from device memory; each of a group's devices reads its own part."};
  return table;
}

std::string_view VerdictOf(double share) {
  if (share < kCheap) return "fine";
  return share < kCostly ? "costly" : "the link is the bottleneck";
}

Table AllReduceTable(const Plan& plan) {
  const Machine& machine = plan.request.machine;
  const uint32_t devices = std::max(plan.group.shards.tensor, 2u);
  Table table{.key = "all_reduce",
              .title = fmt::format("All-reduce between {} devices, for each token of one sequence", devices),
              .columns = {{"link", "over"},
                          {"rate", "usable rate"},
                          {"bytes", "each device sends"},
                          {"time", "takes"},
                          {"step", "the rest of the step"},
                          {"share", "of the step"},
                          {"verdict", "verdict"}}};
  const Result<DeviceGroup> group = MakeGroup(plan.request, {devices, plan.group.shards.context});
  if (!group.ok()) {
    table.notes = {group.status().message() + "."};
    return table;
  }
  const DecodedModel model{group->shard.shape, plan.request.weight_format, group->sizes};
  const DecodeStep step = PlanDecode(model, machine, MemoryRate(machine), 1, plan.request.context_tokens);
  for (const UsableLink& link : UsableLinks(machine)) {
    if (link.kind == LinkKind::kDisk) continue;
    const AllReduce reduce = PlanAllReduce(plan.request.model, devices, link.rate, 1, step.seconds());
    table.rows.push_back({Text(link.title), Rate(link.rate.bytes_per_second), Bytes(reduce.bytes_per_token),
                          Seconds(reduce.seconds), Seconds(step.seconds()), Share(reduce.share),
                          Text(VerdictOf(reduce.share))});
  }
  table.notes = {
      "Twice a layer, activations in 16 bits, as a ring or all to all, whichever is sooner: messages are small."};
  return table;
}

}  // namespace

std::vector<Table> TimeTables(const Plan& plan) { return {MoveTable(plan), DecodeTable(plan), AllReduceTable(plan)}; }

}  // namespace cachalot::plan
