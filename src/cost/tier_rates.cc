#include "cost/tier_rates.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace cachalot::cost {
namespace {

constexpr double kWander = 0.02;         // of theta, squared, with each transfer: about seven of them count
constexpr double kLeastWandering = 0.1;  // as if theta were no smaller
constexpr double kGuessSpread = 100;     // a guess may be off by far more than a transfer's error
constexpr double kMeasuredSpread = 4;    // what was measured, by a few times that
constexpr double kUsualBytes = 1 << 20;
constexpr double kLeastUnit = 1e-3;  // of the time of a usual transfer: no term is beyond learning
constexpr double kLeastSeconds = 1e-9, kMostSeconds = 1e6;  // of a transfer worth learning from
constexpr double kClip = 4;                                 // times the usual error
constexpr double kMostError = 1;                            // none counts as more than twice what was predicted
constexpr double kLeastScale = 1e-2;
constexpr uint64_t kTrustedFrom = 8;  // observations before any error is clipped
constexpr double kErrorMemory = 0.1;
constexpr double kLeastError = 0.02, kMeasuredError = 0.1;
constexpr double kMostDrop = 4;        // times that a byte gets cheaper with one transfer
constexpr double kKeptSeconds = 60;    // without a transfer, before anything is forgotten
constexpr double kForgetSeconds = 60;  // then by so much

constexpr double kLeastRate = 1, kMostRate = 1e15;  // bytes per second

// Usual links: memory, a solid-state disk, a store in the same network.
constexpr std::array<TierRate, kTierNames.size()> kGuesses = {{{2e-5, 5e9}, {2e-4, 5e8}, {1e-3, 1e8}}};

}  // namespace

TierRates::Link TierRates::LinkWith(const TierRate& rate, bool measured) {
  Link link;
  const double byte = 1 / rate.bytes_per_second;
  link.unit = {std::max(rate.latency_seconds, byte * kUsualBytes * kLeastUnit), byte};
  for (size_t i = 0; i < 2; ++i) link.spread[i][i] = measured ? kMeasuredSpread : kGuessSpread;
  if (measured) link.usual_error = kMeasuredError;
  link.observations = measured ? kTrustedFrom : 0;
  link.measured = measured;
  return link;
}

TierRates::TierRates(const TierRateTable& measured) {
  for (size_t tier = 0; tier < links_.size(); ++tier) {
    for (size_t way = 0; way < links_[tier].size(); ++way) {
      const std::optional<TierRate>& rate = measured[tier][way];
      links_[tier][way] = LinkWith(rate.value_or(kGuesses[tier]), rate.has_value());
    }
  }
}

const TierRates::Link& TierRates::At(TierId tier, Direction direction) const {
  return links_[TierIndex(tier)][static_cast<size_t>(direction)];
}

// After so much time without a transfer: the longer, the nearer to where it began.
TierRates::Pair TierRates::ThetaAfter(const Link& link, double idle_seconds) {
  const double kept = std::exp(-std::max(idle_seconds - kKeptSeconds, 0.0) / kForgetSeconds);
  return {1 + (link.theta[0] - 1) * kept, 1 + (link.theta[1] - 1) * kept};
}

void TierRates::Observe(TierId tier, Direction direction, const CompletedTransfer& transfer, Nanos now) {
  const double seconds = transfer.seconds;
  if (transfer.bytes == 0 || !(seconds >= kLeastSeconds && seconds <= kMostSeconds)) return;
  Link& link = links_[TierIndex(tier)][static_cast<size_t>(direction)];
  const double bytes = static_cast<double>(transfer.bytes) + static_cast<double>(transfer.queued_bytes);
  if (!link.measured) {
    const double guessed = link.theta[0] * link.unit[0] + link.theta[1] * link.unit[1] * bytes;
    for (double& unit : link.unit) unit *= seconds / guessed;
    link.measured = true;
  } else if (link.observations > 0) {
    link.theta = ThetaAfter(link, ToSeconds(now - link.last) - seconds);
  }
  link.last = now;

  Pair x = {link.unit[0], link.unit[1] * bytes};
  const double predicted = link.theta[0] * x[0] + link.theta[1] * x[1];
  // Relative to what was predicted: relative to what was measured, slow transfers would count too little.
  const double scale = std::max(predicted, seconds * kLeastScale);
  double uncertainty = 0;
  for (double& term : x) term /= scale;
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 2; ++j) uncertainty += x[i] * link.spread[i][j] * x[j];
  }
  uncertainty = std::max(uncertainty, 0.0);
  double most = kMostError;
  if (link.observations >= kTrustedFrom) {
    most = std::min(most, kClip * std::max(link.usual_error, kLeastError) * std::sqrt(1 + uncertainty));
  }
  const double error = (seconds - predicted) / scale;
  const double size = std::min(std::abs(error), kMostError);
  link.usual_error += (size - link.usual_error) * (link.observations == 0 ? 1 : kErrorMemory);
  ++link.observations;
  Learn(link, x, std::clamp(error, -most, most), uncertainty);
}

void TierRates::Learn(Link& link, const Pair& x, double error, double uncertainty) {
  const double denominator = 1 + uncertainty;
  Pair gain{};
  for (size_t i = 0; i < 2; ++i) gain[i] = link.spread[i][0] * x[0] + link.spread[i][1] * x[1];
  const double least_byte = link.theta[1] / kMostDrop;
  for (size_t i = 0; i < 2; ++i) link.theta[i] += gain[i] / denominator * error;
  link.theta = {std::max(link.theta[0], 0.0), std::max(link.theta[1], least_byte)};
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < 2; ++j) link.spread[i][j] -= gain[i] * gain[j] / denominator;
  }
  for (size_t i = 0; i < 2; ++i) {
    const double size = std::max(link.theta[i], kLeastWandering);
    link.spread[i][i] += kWander * size * size;
    // Transfers of one size tell the two numbers apart no more: what is not known about them has an end.
    const double most = kGuessSpread * size * size;
    if (link.spread[i][i] <= most) continue;
    const double shrunk = std::sqrt(most / link.spread[i][i]);
    link.spread[i][1 - i] *= shrunk;
    link.spread[1 - i][i] *= shrunk;
    link.spread[i][i] = most;
  }
}

TierRate TierRates::Rate(TierId tier, Direction direction, Nanos now) const {
  const Link& link = At(tier, direction);
  const Pair theta = link.observations > 0 ? ThetaAfter(link, ToSeconds(now - link.last)) : link.theta;
  return {.latency_seconds = theta[0] * link.unit[0],
          .bytes_per_second = std::clamp(1 / (theta[1] * link.unit[1]), kLeastRate, kMostRate)};
}

TierRateTable TierRates::Measured(Nanos now) const {
  TierRateTable table;
  for (size_t tier = 0; tier < links_.size(); ++tier) {
    for (size_t way = 0; way < links_[tier].size(); ++way) {
      if (!links_[tier][way].measured) continue;
      table[tier][way] = Rate(static_cast<TierId>(tier + 1), static_cast<Direction>(way), now);
    }
  }
  return table;
}

Json TierRatesAsJson(const TierRateTable& rates) {
  Json::Object tiers;
  for (size_t tier = 0; tier < rates.size(); ++tier) {
    Json::Object directions;
    for (size_t way = 0; way < rates[tier].size(); ++way) {
      if (!rates[tier][way]) continue;
      directions.emplace_back(std::string(kDirectionNames[way]),
                              Json::Object{{"latency", rates[tier][way]->latency_seconds},
                                           {"bytes_per_second", rates[tier][way]->bytes_per_second}});
    }
    if (!directions.empty()) tiers.emplace_back(std::string(kTierNames[tier]), std::move(directions));
  }
  return tiers;
}

namespace {

Result<TierRate> RateFromJson(const Json& json) {
  const auto number = [&](std::string_view name) {
    const Json* member = json.Find(name);
    return member == nullptr ? std::nullopt : member->AsNumber();
  };
  const std::optional<double> latency = number("latency"), rate = number("bytes_per_second");
  if (!latency || !(*latency >= 0 && *latency <= kMostSeconds)) {
    return Invalid(fmt::format("latency: expected a number of seconds, 0 to {}", kMostSeconds));
  }
  if (!rate || !(*rate >= kLeastRate && *rate <= kMostRate)) {
    return Invalid(fmt::format("bytes_per_second: expected a number, {} to {}", kLeastRate, kMostRate));
  }
  return TierRate{*latency, *rate};
}

template <size_t N>
Result<size_t> IndexOf(const std::array<std::string_view, N>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return Invalid(fmt::format("{}: expected one of {}", name, fmt::join(names, ", ")));
  return static_cast<size_t>(found - names.begin());
}

}  // namespace

Result<TierRateTable> TierRatesFromJson(const Json& json) {
  const Json::Object* tiers = json.AsObject();
  if (tiers == nullptr) return Invalid(fmt::format("expected an object, got {}", json.TypeName()));
  TierRateTable table;
  for (const auto& [tier_name, directions] : *tiers) {
    CACHALOT_ASSIGN_OR_RETURN(const size_t tier, IndexOf(kTierNames, tier_name));
    if (directions.AsObject() == nullptr) return Invalid(fmt::format("{}: expected an object", tier_name));
    for (const auto& [way_name, stored] : *directions.AsObject()) {
      Result<size_t> way = IndexOf(kDirectionNames, way_name);
      if (!way.ok()) return way.status().Annotate(tier_name);
      Result<TierRate> rate = RateFromJson(stored);
      if (!rate.ok()) return rate.status().Annotate(fmt::format("{}: {}", tier_name, way_name));
      table[tier][*way] = *rate;
    }
  }
  return table;
}

}  // namespace cachalot::cost
