#include "plan/live_load.h"

#include <algorithm>
#include <utility>

namespace cachalot::plan {
namespace {

double Share(double part, double whole) { return whole > 0 ? std::clamp(part / whole, 0.0, 1.0) : 0; }

double InUse(const Scrape& scrape) {
  const double slots = scrape.Level(Gauge::kKvSlots);
  return Share(slots - scrape.Level(Gauge::kKvFreeSlots) - scrape.Level(Gauge::kKvIdleSlots), slots);
}

double Waste(const Scrape& scrape) {
  const auto bytes = [&](std::string_view part) { return scrape.Level(Gauge::kKvLedgerBytes, part); };
  return Share(bytes("waste"), scrape.Sum(Gauge::kKvLedgerBytes) - bytes("free") - bytes("padding"));
}

// Where computing went, by what was computed and what each costs.
void DivideCompute(const LiveWindow& window, LiveShares* shares) {
  const Scrape& added = window.between;
  const auto cost = [&](std::string_view term) { return window.after.Level(Gauge::kStepCost, term); };
  const double seconds = added.Total(Counter::kEngineTime, "compute") * 1e-6;
  const double steps = cost("step") * added.Total(Counter::kSteps);
  const double rows =
      cost("row") * added.Total(Counter::kTokensComputed) + cost("logit_row") * added.Total(Counter::kTokensGenerated);
  const double known = std::max(steps + rows, seconds);
  shares->by_step = Share(steps, known);
  shares->by_row = Share(rows, known);
  if (seconds > 0) shares->by_attention = 1 - shares->by_step - shares->by_row;
}

LiveBound BoundOf(const LiveWindow& window, const LiveShares& shares) {
  const double before = window.before.Level(Gauge::kWaitingRequests);
  const double waiting = window.after.Level(Gauge::kWaitingRequests);
  const bool ran = window.between.Total(Counter::kSteps) > 0 || window.after.Level(Gauge::kRunningSequences) > 0;
  const bool waits = std::min(before, waiting) > 0 || waiting > before || shares.pressure_some >= kMuchPressure;
  if (!ran && !waits) return LiveBound::kNobodyThere;
  if (shares.refaults >= kManyRefaults) return LiveBound::kRecomputation;
  if (!waits) return LiveBound::kNothing;
  if (shares.pressure_some >= kMuchPressure) {
    return shares.waste >= kMuchWaste ? LiveBound::kFragmentation : LiveBound::kCapacity;
  }
  if (shares.transfers >= kMuchTransfers) return LiveBound::kTransfers;
  if (waiting > 0 && window.after.Level(Gauge::kCappedRequests) >= kMostlyWaiting * waiting) return LiveBound::kCaps;
  if (shares.compute < kBusy) return LiveBound::kUnclear;
  return shares.by_row >= 0.5 ? LiveBound::kCompute : LiveBound::kBandwidth;
}

}  // namespace

Result<LiveWindow> LiveWindow::Of(Scrape before, Scrape after, double seconds) {
  CACHALOT_ASSIGN_OR_RETURN(Scrape between, Scrape::Between(before, after));
  return LiveWindow{std::move(before), std::move(after), std::move(between), seconds};
}

LiveShares SharesOf(const LiveWindow& window) {
  const Scrape& added = window.between;
  const auto of_time = [&](Counter counter, std::string_view label) {
    return Share(added.Total(counter, label) * 1e-6, window.seconds);
  };
  LiveShares shares;
  shares.compute = of_time(Counter::kEngineTime, "compute");
  shares.other = of_time(Counter::kEngineTime, "other");
  shares.transfers = of_time(Counter::kEngineTime, "transfers");
  shares.idle = std::max(0.0, 1 - shares.compute - shares.other - shares.transfers);
  shares.pressure_some = of_time(Counter::kKvPressureTime, "some");
  shares.pressure_full = of_time(Counter::kKvPressureTime, "full");
  const double found = added.Total(Counter::kPromptTokensCached);
  shares.hits = Share(found, found + added.Total(Counter::kPromptTokensComputed));
  shares.refaults = Share(added.Total(Counter::kRefaultTokens), added.Total(Counter::kTokensComputed));
  shares.in_use = std::max(InUse(window.before), InUse(window.after));
  shares.waste = Waste(window.after);
  DivideCompute(window, &shares);
  return shares;
}

LiveFinding JudgeLive(const LiveWindow& window) {
  LiveFinding finding;
  finding.shares = SharesOf(window);
  finding.bound = BoundOf(window, finding.shares);
  finding.growing = window.after.Level(Gauge::kWaitingRequests) > window.before.Level(Gauge::kWaitingRequests);
  return finding;
}

}  // namespace cachalot::plan
