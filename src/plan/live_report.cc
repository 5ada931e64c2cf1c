#include "plan/live_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/units.h"

namespace cachalot::plan {
namespace {

uint64_t Whole(double value) { return static_cast<uint64_t>(std::llround(std::max(value, 0.0))); }
std::string Percent(double share) { return FormatCell(Share(share)); }
double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

std::string Bounds(const std::optional<BucketCounts::Range>& range) {
  if (!range) return "-";
  if (std::isinf(range->up_to)) return fmt::format("over {}", FormatCell(Seconds(range->above)));
  if (range->above <= 0) return fmt::format("up to {}", FormatCell(Seconds(range->up_to)));
  return fmt::format("{} to {}", FormatCell(Seconds(range->above)), FormatCell(Seconds(range->up_to)));
}

std::string CapacityOf(const LiveShares& s) {
  std::string text = fmt::format("Capacity binds: requests waited for KV {} of the time, and {} of the pool is in use",
                                 Percent(s.pressure_some), Percent(s.in_use));
  if (s.compute < kBusy) return text + ".";
  return text + fmt::format("; but the model ran {} of it, so that more KV helps only by running more at once.",
                            Percent(s.compute));
}

std::string BoundSentence(const LiveFinding& finding) {
  const LiveShares& s = finding.shares;
  const std::string idle_memory = fmt::format("more KV does nothing; {} of the pool is in use", Percent(s.in_use));
  switch (finding.bound) {
    case LiveBound::kNobodyThere: return "Nothing can be said: no request came or ran.";
    case LiveBound::kNothing:
      return fmt::format("Nothing binds: nobody waited; the model ran {} of the time.", Percent(s.compute));
    case LiveBound::kCapacity: return CapacityOf(s);
    case LiveBound::kFragmentation:
      return fmt::format(
          "Fragmentation binds: requests waited for KV {} of the time, and {} of what blocks take holds no token "
          "(--block-tokens).",
          Percent(s.pressure_some), Percent(s.waste));
    case LiveBound::kRecomputation:
      return fmt::format("Recomputation binds: {} of what was computed had been computed before, and lost for room.",
                         Percent(s.refaults));
    case LiveBound::kTransfers:
      return fmt::format("Transfers bind: steps waited {} of the time for KV of lower tiers.", Percent(s.transfers));
    case LiveBound::kCaps: return "Caps bind: those that wait are of tenants that run all that they may.";
    case LiveBound::kCompute:
      return fmt::format("Compute binds: requests wait while the model runs {} of the time, mostly with rows: {}.",
                         Percent(s.compute), idle_memory);
    case LiveBound::kBandwidth:
      return fmt::format(
          "Bandwidth binds: requests wait while the model runs {} of the time, mostly with what a step costs by itself "
          "and with attention: {}.",
          Percent(s.compute), idle_memory);
    case LiveBound::kUnclear: break;
  }
  return fmt::format(
      "Unclear: requests wait, though hardly for KV, and the model runs {} of the time only; look for them "
      "in the table of levels.",
      Percent(s.compute));
}

std::string QueueSentence(const LiveWindow& window, const LiveFinding& finding) {
  const uint64_t before = Whole(window.before.Level(Gauge::kWaitingRequests));
  const uint64_t after = Whole(window.after.Level(Gauge::kWaitingRequests));
  if (before == 0 && after == 0) return "The queue is empty.";
  return fmt::format("The queue {}: {} requests waited, then {}.",
                     finding.growing  ? "grows"
                     : before > after ? "shrinks"
                                      : "stays",
                     FormatCount(before), FormatCount(after));
}

// What an LRU pool of other sizes would have found, since the server began; empty where nothing is known of it.
std::string PoolSentence(const Scrape& now) {
  const double found = now.Total(Counter::kPromptTokensCached);
  const double prompts = found + now.Total(Counter::kPromptTokensComputed);
  const double twice = now.Total(Counter::kShadowHitTokens, "2"), most = now.Total(Counter::kShadowHitTokens, "inf");
  if (prompts <= 0 || most <= 0) return "";
  return fmt::format(
      "Since it began it found {} of prompt tokens; a pool of twice the size would have found {}, one without limit "
      "{}.",
      Percent(Ratio(found, prompts)), Percent(Ratio(std::max(found, twice), prompts)),
      Percent(Ratio(std::max(found, most), prompts)));
}

std::string RecordSentence(const LiveServerName& server) {
  return fmt::format(
      "What a change would gain, prompt order, who comes back when and the peaks of other hours cannot be told "
      "without a record: start it as `cachalot serve {} --record FILE`, then `cachalot advise FILE --url {}`.",
      server.model.empty() ? "MODEL" : server.model, server.address);
}

Table LevelTable(const LiveWindow& window) {
  Table table{.key = "levels",
              .title = "Levels",
              .columns = {{"what", "what"}, {"before", "first reading"}, {"after", "second"}}};
  const auto row = [&](std::string_view what, Gauge gauge) {
    table.rows.push_back(
        {Text(what), Count(Whole(window.before.Level(gauge))), Count(Whole(window.after.Level(gauge)))});
  };
  row("sequences that run", Gauge::kRunningSequences);
  row("requests that wait", Gauge::kWaitingRequests);
  row("of them, for what a running one computes", Gauge::kAwaitingRequests);
  row("of them, for a tenant's cap", Gauge::kCappedRequests);
  row("of them, outside by thrash control", Gauge::kOutsideRequests);
  row("slots of the pool", Gauge::kKvSlots);
  row("free", Gauge::kKvFreeSlots);
  row("kept for later requests", Gauge::kKvIdleSlots);
  row("promised to those that run", Gauge::kKvPromisedSlots);
  return table;
}

Table TimeTable(const LiveWindow& window, const LiveFinding& finding) {
  Table table{.key = "time",
              .title = fmt::format("Where {} went", FormatCell(Seconds(window.seconds))),
              .columns = {{"what", "what"}, {"share", "share"}}};
  const LiveShares& s = finding.shares;
  const auto row = [&](std::string_view what, double share) { table.rows.push_back({Text(what), Share(share)}); };
  row("the model ran", s.compute);
  row("other steps", s.other);
  row("waiting for transfers", s.transfers);
  row("idle", s.idle);
  row("some requests waited for KV", s.pressure_some);
  row("all did, or computed what was lost", s.pressure_full);
  row("of running: what a step costs by itself", s.by_step);
  row("of running: rows", s.by_row);
  row("of running: attention and the rest", s.by_attention);
  table.notes = {"what running is made of is an estimate by the learnt cost of steps"};
  return table;
}

Table TrafficTable(const LiveWindow& window) {
  Table table{.key = "added",
              .title = "What was done",
              .columns = {{"what", "what"}, {"between", "between"}, {"all", "since it began"}}};
  const auto row = [&](std::string_view what, auto cell, auto amount_of) {
    table.rows.push_back({Text(what), cell(Whole(amount_of(window.between))), cell(Whole(amount_of(window.after)))});
  };
  const auto of = [](Counter counter, std::string_view label = {}) {
    return [counter, label](const Scrape& s) { return s.Total(counter, label); };
  };
  row("requests answered", Count,
      [](const Scrape& s) { return s.Total(Counter::kRequests, "stop") + s.Total(Counter::kRequests, "length"); });
  row("refused", Count, of(Counter::kRequests, "rejected"));
  row("prompt tokens found", Tokens, of(Counter::kPromptTokensCached));
  row("of them in host memory", Tokens, of(Counter::kHostTokensLoaded));
  row("of them on disk", Tokens, of(Counter::kTokensLoaded));
  row("prompt tokens computed", Tokens, of(Counter::kPromptTokensComputed));
  row("tokens generated", Tokens, of(Counter::kTokensGenerated));
  row("computed again, lost for want of room", Tokens, of(Counter::kRefaultTokens));
  row("computed again after preemption", Tokens, of(Counter::kTokensRecomputed));
  row("preemptions", Count, of(Counter::kPreemptions));
  row("slots evicted", Count, of(Counter::kKvSlotsEvicted));
  row("to host memory", Bytes, of(Counter::kTierBytes, "host_down"));
  row("from host memory", Bytes, of(Counter::kTierBytes, "host_up"));
  row("to disk", Bytes, of(Counter::kTierBytes, "disk_down"));
  row("from disk", Bytes, of(Counter::kTierBytes, "disk_up"));
  row("loads that failed", Count, of(Counter::kLoadsFailed));
  row("times that thrash control let fewer take part", Count, of(Counter::kKvLimitDecreases));
  return table;
}

Table LatencyTable(const LiveWindow& window) {
  Table table{
      .key = "latency",
      .title = "Times",
      .columns = {
          {"what", "what"}, {"p50", "p50"}, {"p99", "p99"}, {"all_p50", "p50 since it began"}, {"all_p99", "p99"}}};
  const auto row = [&](std::string_view what, Histogram histogram) {
    const BucketCounts &now = window.between.Values(histogram), &all = window.after.Values(histogram);
    table.rows.push_back({Text(what), Text(Bounds(now.Quantile(0.5))), Text(Bounds(now.Quantile(0.99))),
                          Text(Bounds(all.Quantile(0.5))), Text(Bounds(all.Quantile(0.99)))});
  };
  row("to the first token", Histogram::kTimeToFirstToken);
  row("between tokens", Histogram::kInterTokenTime);
  row("of a request", Histogram::kRequestTime);
  table.notes = {"as exact as the buckets of the server's histograms"};
  return table;
}

Table PromptTable(const LiveWindow& window) {
  Table table{.key = "prompt_tokens",
              .title = "What became of prompt tokens",
              .columns = {{"class", "class"}, {"between", "between"}, {"share", "share"}, {"all", "since it began"}}};
  const double whole = window.between.Sum(Counter::kPromptTokensByClass);
  for (const std::string_view name : metric_values::kTokenClasses) {
    const double now = window.between.Total(Counter::kPromptTokensByClass, name);
    const double all = window.after.Total(Counter::kPromptTokensByClass, name);
    if (all <= 0) continue;
    table.rows.push_back({Text(name), Tokens(Whole(now)), Share(Ratio(now, whole)), Tokens(Whole(all))});
  }
  table.notes = {"shared and own were found; capacity was lost to others that needed the room: see docs/metrics.md"};
  return table;
}

}  // namespace

Report BuildLiveReport(const LiveServerName& server, const LiveWindow& window, const LiveFinding& finding) {
  Report report;
  report.title = fmt::format("{}{}, {} of it", server.address, server.model.empty() ? "" : " with " + server.model,
                             FormatCell(Seconds(window.seconds)));
  report.answers = {BoundSentence(finding), QueueSentence(window, finding)};
  if (std::string pools = PoolSentence(window.after); !pools.empty()) report.answers.push_back(std::move(pools));
  report.answers.push_back(RecordSentence(server));
  report.tables = {TimeTable(window, finding), LevelTable(window), TrafficTable(window), LatencyTable(window)};
  if (Table prompts = PromptTable(window); !prompts.rows.empty()) report.tables.push_back(std::move(prompts));
  return report;
}

}  // namespace cachalot::plan
