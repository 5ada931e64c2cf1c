#include "plan/advice.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace cachalot::plan {
namespace {

constexpr double kFewer = 0.01;  // of the requests: so many more or fewer served counts
// Longer than alone by this, requests wait for one another.
constexpr double kWaiting = 1.25;
constexpr uint64_t kMuch = 8;  // times the pool: enough for whatever came in a trace

Setting With(const Setting& now, const auto& change) {
  Setting setting = now;
  change(setting);
  return setting;
}

// The present without one constraint each. What a step costs by itself and per visible position counts as bandwidth:
// weights and KV are read.
std::vector<Probe> ProbesOf(const Setting& now, const Outcome& present) {
  std::vector<Probe> probes;
  const auto add = [&](Constraint constraint, std::string what, const auto& change) {
    probes.push_back({constraint, std::move(what), With(now, change), {}, 1});
  };
  add(Constraint::kCapacity, fmt::format("{} times the pool", kMuch), [](Setting& s) { s.slots *= kMuch; });
  add(Constraint::kRecomputation, "what is evicted comes back at once", [](Setting& s) {
    s.host_link.reset();
    s.host_slots = s.prefix_cache ? s.slots * kMuch : 0;
  });
  add(Constraint::kFragmentation, "only tokens take room", [&](Setting& s) {
    s.slots = static_cast<uint64_t>(static_cast<double>(s.slots) / std::max(1 - present.waste, 0.01));
    s.asks_exactly = true;
  });
  const bool read_apart = std::ranges::any_of(now.reading, [](double seconds) { return seconds > 0; });
  add(Constraint::kBandwidth, "memory twice as fast", [&](Setting& s) {
    for (const size_t term : {0, 2, 3}) (read_apart ? s.reading : s.curve)[term] /= 2;
  });
  add(Constraint::kCompute, "arithmetic twice as fast", [&](Setting& s) {
    for (const size_t term : {1, 4}) s.curve[term] /= 2;
    if (read_apart) s.curve[2] /= 2, s.curve[3] /= 2;
  });
  return probes;
}

double LeastThatCounts(const Outcome& outcome) { return std::max(1.0, kFewer * static_cast<double>(outcome.requests)); }

// How many requests are not served, in numbers that count.
uint64_t Unserved(const Outcome& outcome) {
  return static_cast<uint64_t>(static_cast<double>(outcome.requests - outcome.within_target) /
                               LeastThatCounts(outcome));
}

// Most served first, then largest gain; among those that are as good, capacity last: it is named where nothing more
// particular is as good.
void SortProbes(std::vector<Probe>* probes) {
  std::ranges::stable_sort(*probes, {}, [](const Probe& p) { return std::tuple(Unserved(p.outcome), -p.gain); });
  constexpr double kAsGood = 0.95;
  const double best = probes->front().gain;
  const uint64_t fewest = Unserved(probes->front().outcome);
  const auto alike = std::ranges::find_if(
      *probes, [&](const Probe& p) { return Unserved(p.outcome) > fewest || p.gain < kAsGood * best; });
  std::stable_partition(probes->begin(), alike, [](const Probe& p) { return p.constraint != Constraint::kCapacity; });
}

int GainClass(double gain) { return gain >= 2 ? 3 : gain >= 1.2 ? 2 : gain >= kLeastGain ? 1 : 0; }

}  // namespace

double GainOf(const Outcome& before, const Outcome& after) {
  const auto served_before = static_cast<double>(before.within_target);
  const auto served_after = static_cast<double>(after.within_target);
  if (std::abs(served_after - served_before) >= LeastThatCounts(before)) {
    return std::max(served_after, 1.0) / std::max(served_before, 1.0);
  }
  return after.e2e_mean_seconds <= 0 ? 1 : before.e2e_mean_seconds / after.e2e_mean_seconds;
}

Result<Diagnosis> Diagnose(const Present& present, const Simulate& simulate) {
  Diagnosis diagnosis;
  const Setting& now = present.setting;
  const std::array<Setting, 2> first = {now, With(now, [](Setting& s) { s.alone = true; })};
  CACHALOT_ASSIGN_OR_RETURN(std::vector<Outcome> outcomes, simulate(first));
  diagnosis.present = std::move(outcomes[0]);
  diagnosis.alone = std::move(outcomes[1]);
  if (diagnosis.present.served == 0) {
    return Invalid(fmt::format("none of {} requests is served as it is, so there is nothing to compare with: {}",
                               diagnosis.present.requests, diagnosis.present.first_refusal));
  }

  diagnosis.probes = ProbesOf(now, diagnosis.present);
  const std::vector<Lever> levers = LeversOf(present);
  std::vector<Setting> settings;
  for (const Probe& probe : diagnosis.probes) settings.push_back(probe.setting);
  for (const Lever& lever : levers) settings.push_back(lever.setting);
  const std::vector<Lever> credits = CreditsOf(present);
  for (const Lever& credit : credits) settings.push_back(credit.setting);
  CACHALOT_ASSIGN_OR_RETURN(outcomes, simulate(settings));

  for (size_t i = 0; i < diagnosis.probes.size(); ++i) {
    Probe& probe = diagnosis.probes[i];
    probe.outcome = std::move(outcomes[i]);
    probe.gain = GainOf(diagnosis.present, probe.outcome);
  }
  for (size_t i = 0; i < levers.size(); ++i) {
    Outcome& after = outcomes[diagnosis.probes.size() + i];
    const double gain = GainOf(diagnosis.present, after);
    auto& list = gain >= kLeastGain ? diagnosis.advice : diagnosis.rejected;
    list.push_back({levers[i], std::move(after), gain});
  }
  for (size_t i = 0; i < credits.size(); ++i) {
    Outcome& without = outcomes[diagnosis.probes.size() + levers.size() + i];
    const double gain = GainOf(without, diagnosis.present);
    diagnosis.credits.push_back({credits[i], std::move(without), gain});
  }
  SortProbes(&diagnosis.probes);
  std::ranges::stable_sort(diagnosis.advice, {}, [](const Advice& advice) {
    const bool elsewhere = advice.lever.price == Price::kNotHere;
    return std::tuple(elsewhere, Unserved(advice.after), -GainClass(advice.gain), advice.lever.risk, advice.lever.price,
                      -advice.gain);
  });
  const Outcome& loaded = diagnosis.present;
  diagnosis.waits = loaded.within_target < diagnosis.alone.within_target ||
                    loaded.e2e_mean_seconds > kWaiting * diagnosis.alone.e2e_mean_seconds ||
                    Unserved(diagnosis.probes.front().outcome) < Unserved(loaded);
  if (diagnosis.waits && diagnosis.probes.front().gain >= kLeastGain) {
    diagnosis.binds = diagnosis.probes.front().constraint;
  }
  return diagnosis;
}

}  // namespace cachalot::plan
