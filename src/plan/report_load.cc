#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/units.h"
#include "plan/decoding.h"
#include "plan/moving.h"
#include "plan/report_tables.h"

namespace cachalot::plan {
namespace {

struct Level {
  std::string_view name;
  uint64_t sequences;
};

std::string ShapeOfGroup(const Shards& shards) {
  std::string text = fmt::format("{} tensor shard(s)", shards.tensor);
  if (shards.context > 1) text += fmt::format(" x {} context shards", shards.context);
  return text;
}

std::array<Level, 4> LevelsOf(const ConcurrencyProfile& profile) {
  return {{{"mean", profile.mean}, {"p50", profile.p50}, {"p99", profile.p99}, {"peak", profile.peak}}};
}

// The devices for so many sequences: groups as given, or else of the fewest devices. Nothing where none holds even one.
std::optional<Fleet> FleetFor(const Plan& plan, uint64_t sequences) {
  if (!plan.request.choose_shards) {
    if (plan.group.sequences == 0) return std::nullopt;
    return Fleet{plan.group, (sequences + plan.group.sequences - 1) / plan.group.sequences};
  }
  const std::vector<Fleet> fleets = FleetsFor(plan.request, sequences);
  const std::optional<size_t> smallest = SmallestFleet(fleets);
  if (!smallest) return std::nullopt;
  return fleets[*smallest];
}

uint64_t HeldBy(const std::optional<Fleet>& fleet) { return fleet ? fleet->groups * fleet->group.sequences : 0; }

// What room for `held` sequences does under that load.
std::string VerdictOn(uint64_t held, const ConcurrencyProfile& profile) {
  if (held >= profile.peak) return "holds always";
  std::string verdict = held >= profile.p99 ? "holds at p99" : "fails at p99";
  if (!profile.samples.empty()) verdict += fmt::format(", short {:.1f} % of the time", ShareAbove(profile, held) * 100);
  return verdict;
}

Table FleetTable(const Plan& plan) {
  const uint64_t users = std::max<uint64_t>(plan.request.users, 1);
  Table table{.key = "devices",
              .title = fmt::format("{} for {} user(s) at {} tokens", plan.request.machine.device.title,
                                   FormatCount(users), FormatCount(plan.request.context_tokens)),
              .columns = {{"tensor", "tensor shards"},
                          {"groups", "groups"},
                          {"devices", "devices"},
                          {"held", "sequences that they hold"},
                          {"best", "fewest"}}};
  for (size_t i = 0; i < plan.fleets.size(); ++i) {
    const Fleet& fleet = plan.fleets[i];
    table.rows.push_back({Count(fleet.group.shards.tensor), Count(fleet.groups), DeviceCount(fleet.devices()),
                          Sequences(fleet.groups * fleet.group.sequences), Text(i == plan.smallest ? "<-" : "")});
  }
  if (plan.fleets.empty()) table.notes = {"No number of devices up to 64 holds the weights and one sequence."};
  return table;
}

Table ConcurrencyTable(const Plan& plan, const ConcurrencyProfile& profile) {
  Table table{.key = "concurrency",
              .title = fmt::format("KV memory sized for the mean, p50, p99 and peak, at {} tokens each",
                                   FormatCount(plan.request.context_tokens)),
              .columns = {{"sized_for", "sized for"},
                          {"sequences", "sequences"},
                          {"kv", "KV memory"},
                          {"alone", "no more than that"},
                          {"devices", "devices"},
                          {"held", "they hold"},
                          {"waiting_p99", "without room at p99"},
                          {"waiting_peak", "at the peak"},
                          {"verdict", "verdict on the devices"}}};
  for (const Level& level : LevelsOf(profile)) {
    const Result<uint64_t> bytes = PoolBytes(plan.sizes, level.sequences, plan.request.context_tokens);
    const std::optional<Fleet> fleet = FleetFor(plan, level.sequences);
    const uint64_t held = HeldBy(fleet);
    const auto without_room = [&](uint64_t arriving) { return Sequences(arriving - std::min(arriving, held)); };
    table.rows.push_back({Text(level.name), Sequences(level.sequences), bytes.ok() ? Bytes(*bytes) : Text("-"),
                          Text(VerdictOn(level.sequences, profile)), fleet ? DeviceCount(fleet->devices()) : Text("-"),
                          Sequences(held), without_room(profile.p99), without_room(profile.peak),
                          Text(VerdictOn(held, profile))});
  }
  table.notes = {
      "Memory that is right on average is too small half of the time: what has no room waits or is "
      "preempted."};
  return table;
}

struct Throughput {
  double prefill_seconds = 0;  // per token, of the whole group
  double decode_seconds = 0;   // per token of all sequences together
  uint64_t sequences = 0;
};

Throughput ThroughputOf(const Plan& plan, const MovedSession& session) {
  const PlanRequest& request = plan.request;
  Throughput out;
  out.sequences = request.users == 0 ? plan.group.sequences : std::min(request.users, plan.group.sequences);
  out.prefill_seconds = RecomputeSeconds(session, request.context_tokens) / static_cast<double>(request.context_tokens);
  const DecodedModel model{plan.group.shard.shape, request.weight_format, plan.group.sizes};
  const DecodeStep step =
      PlanDecode(model, request.machine, MemoryRate(request.machine), out.sequences, request.context_tokens);
  out.decode_seconds = out.sequences == 0 ? 0 : step.seconds() / static_cast<double>(out.sequences);
  return out;
}

Table PriceTable(const Plan& plan) {
  const PlanRequest& request = plan.request;
  const Machine& machine = request.machine;
  const uint32_t devices = plan.group.shards.devices();
  const MovedSession session = SessionOf(request.model, request.weight_format, plan.group.sizes, machine);
  const Throughput speed = ThroughputOf(plan, session);
  Table table{.key = "price",
              .title = fmt::format("Price of a million tokens, {} device(s) at $ {} an hour", devices,
                                   request.prices.device_hour),
              .columns = {{"tokens", "tokens"}, {"speed", "speed"}, {"price", "a million cost"}}};
  table.rows.push_back({Text("prompt, computed"), Speed(1 / speed.prefill_seconds),
                        Dollars(MillionComputed(request.prices, devices, speed.prefill_seconds))});
  for (const UsableLink& link : UsableLinks(machine)) {
    const Move move = PlanMove(session, link.rate, request.context_tokens, 0);
    const double seconds = move.load_seconds / static_cast<double>(request.context_tokens);
    const uint64_t token_bytes = PagedBytes(plan.sizes, request.context_tokens) / request.context_tokens;
    table.rows.push_back({Text(fmt::format("prompt, cached, over {}", link.title)), Speed(1 / seconds),
                          Dollars(MillionLoaded(request.prices, devices, seconds, token_bytes))});
  }
  if (speed.sequences > 0) {
    table.rows.push_back({Text(fmt::format("answers, {} sequences at once", FormatCount(speed.sequences))),
                          Speed(1 / speed.decode_seconds),
                          Dollars(MillionComputed(request.prices, devices, speed.decode_seconds))});
  }
  table.notes = {fmt::format("Ceilings of speed, so least prices. Kept KV costs $ {} a GiB and month for {} hours.",
                             request.prices.storage_gib_month, request.prices.keep_hours)};
  return table;
}

std::string DevicesSentence(const Plan& plan) {
  const PlanRequest& request = plan.request;
  const uint64_t users = std::max<uint64_t>(request.users, 1);
  const std::optional<Fleet> fleet = FleetFor(plan, users);
  if (!fleet) {
    return fmt::format("{} does not fit on {}, not even for one sequence of {} tokens on {} device(s).",
                       request.model.name, request.machine.device.title, FormatCount(request.context_tokens),
                       request.choose_shards ? 64 : plan.group.shards.devices());
  }
  return fmt::format("{} user(s) at {} tokens need {} x {}: {} group(s) of {}, room for {} sequences.",
                     FormatCount(users), FormatCount(request.context_tokens), fleet->devices(),
                     request.machine.device.title, fleet->groups, ShapeOfGroup(fleet->group.shards),
                     FormatCount(fleet->groups * fleet->group.sequences));
}

// What becomes of memory for the mean alone, and what of the devices that one buys for it, which may hold more.
std::string MeanSentence(const Plan& plan, const ConcurrencyProfile& load) {
  const std::optional<Fleet> fleet = FleetFor(plan, load.mean);
  const uint64_t held = HeldBy(fleet);
  const auto without_room = [](uint64_t room, uint64_t arriving) {
    return fmt::format("{} of {}", FormatCount(arriving - std::min(arriving, room)), FormatCount(arriving));
  };
  std::string text =
      fmt::format("KV memory for no more than the mean of {} sequences fails: at p99 {} have no room, at the peak {}",
                  FormatCount(load.mean), without_room(load.mean, load.p99), without_room(load.mean, load.peak));
  if (!fleet) return text + ".";
  text += fmt::format("; the {} x {} that it takes hold{} {}: ", fleet->devices(), plan.request.machine.device.title,
                      fleet->devices() == 1 ? "s" : "", FormatCount(held));
  if (held >= load.peak) return text + "enough for the peak.";
  if (held >= load.p99)
    return text + fmt::format("enough at p99, at the peak {} have no room.", without_room(held, load.peak));
  return text + fmt::format("at p99 {} have no room, at the peak {}.", without_room(held, load.p99),
                            without_room(held, load.peak));
}

}  // namespace

std::vector<std::string> Answers(const Plan& plan) {
  const PlanRequest& request = plan.request;
  std::vector<std::string> answers = {DevicesSentence(plan)};
  if (std::string ignored = IgnoredKeysText(request.model); !ignored.empty()) answers.push_back(ignored + ".");
  answers.push_back(
      fmt::format("A session of {} tokens keeps {} of KV; {} of memory are left for KV on {} device(s), "
                  "so {} fit and memory ends at {}.",
                  FormatCount(request.context_tokens), FormatBytes(LiveBytes(plan.sizes, request.context_tokens)),
                  FormatBytes(plan.group.pool_bytes()), plan.group.shards.devices(), FormatCount(plan.group.sequences),
                  FormatCount(plan.group.sequences + 1)));
  if (request.concurrency && request.concurrency->mean < request.concurrency->p99) {
    answers.push_back(MeanSentence(plan, *request.concurrency));
  }
  return answers;
}

std::vector<Table> LoadTables(const Plan& plan) {
  std::vector<Table> tables = {FleetTable(plan)};
  if (plan.request.concurrency) tables.push_back(ConcurrencyTable(plan, *plan.request.concurrency));
  if (plan.request.prices.device_hour > 0) tables.push_back(PriceTable(plan));
  return tables;
}

Chart MemoryChart(const Plan& plan) {
  const DeviceGroup& group = plan.group;
  const uint32_t devices = group.shards.devices();
  Chart chart;
  chart.fixed_bytes = (group.memory.weight_bytes + group.memory.activation_bytes) * devices;
  chart.sequence_bytes = ReservedBytes(group.sizes, ShardTokens(plan.request.context_tokens, group.shards)) * devices;
  chart.most_sequences = std::max<uint64_t>({group.sequences * 3 / 2, plan.request.users * 5 / 4, 4});
  if (plan.request.users > 0) chart.concurrencies.push_back({"users", plan.request.users});
  if (plan.request.concurrency) {
    for (const Level& level : LevelsOf(*plan.request.concurrency)) {
      chart.concurrencies.push_back({std::string(level.name), level.sequences});
    }
    chart.most_sequences = std::max(chart.most_sequences, plan.request.concurrency->peak * 5 / 4);
  }
  for (const uint64_t times : {1, 2, 4}) {
    const uint64_t count = times * devices;
    chart.capacities.push_back(
        {fmt::format("{} x {}", count, plan.request.machine.device.name), group.memory.usable_bytes * count});
  }
  return chart;
}

}  // namespace cachalot::plan
