#include "kv/eviction_returns.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <vector>

namespace cachalot::kv {
namespace {

constexpr double kFirstBinSeconds = 4;
constexpr double kBinRatio = std::numbers::sqrt2;
constexpr double kLevelsPerOctave = 2;
constexpr double kPriorReturns = 2;  // weight of "no difference" against what is observed, in returns
constexpr double kPriorRate = 1e-3;  // per second, before anything is known
constexpr uint8_t kLastTurn = 9;     // and later ones
constexpr uint8_t kShortBlock = 10;
constexpr uint8_t kLastOctave = 20;
constexpr double kMostFactor = 1e3;
constexpr double kGapUnitSeconds = 8;
constexpr uint64_t kFreshUnitTokens = 128;

// 0 below 1, then 1 for [1, 2), 2 for [2, 4) and so on.
uint8_t Octave(uint64_t value) { return static_cast<uint8_t>(std::min<int>(std::bit_width(value), kLastOctave)); }

uint8_t GapValue(Nanos gap) {
  const double units = std::max(0.0, ToSeconds(gap)) / kGapUnitSeconds;
  return static_cast<uint8_t>(1 + Octave(static_cast<uint64_t>(std::min(units, 1e9))));
}

const std::array<double, kIdleBins + 1>& BinBegins() {
  static const auto begins = [] {
    std::array<double, kIdleBins + 1> out{};
    for (size_t b = 1; b < out.size(); ++b) out[b] = kFirstBinSeconds * std::pow(kBinRatio, static_cast<double>(b - 1));
    return out;
  }();
  return begins;
}

}  // namespace

double IdleBinBegin(int bin) { return BinBegins()[static_cast<size_t>(bin)]; }

int IdleBinOf(double idle_seconds) {
  const auto& begins = BinBegins();
  const auto above = std::upper_bound(begins.begin() + 1, begins.begin() + kIdleBins, idle_seconds);
  return static_cast<int>(above - begins.begin()) - 1;
}

VisitTraits TurnTraits(uint32_t turns, Nanos gap, uint64_t fresh_tokens) {
  return {static_cast<uint8_t>(std::min<uint32_t>(turns, kLastTurn)), turns == 0 ? uint8_t{0} : GapValue(gap),
          Octave(fresh_tokens / kFreshUnitTokens)};
}

VisitTraits SharedTraits(uint32_t branches, Nanos gap) { return {Octave(branches), GapValue(gap), 0}; }

VisitTraits ShortBlockTraits(VisitTraits visit) { return {kShortBlock, visit[1], visit[2]}; }

ReturnRates::ReturnRates() {
  for (auto& trait : factors_) trait.fill(1);
  for (size_t b = 0; b < base_.size(); ++b) base_[b] = kPriorRate / static_cast<double>(1 + b);
  Tabulate();
}

double ReturnRates::Score(const VisitTraits& traits) const {
  double score = 1;
  for (size_t t = 0; t < traits.size(); ++t) score *= factors_[t][traits[t]];
  return score;
}

int ReturnRates::LevelOf(double score) {
  const double level = std::floor(std::log2(score) * kLevelsPerOctave) + 0.5 * kLevels;
  return static_cast<int>(std::clamp(level, 0.0, kLevels - 1.0));
}

double ReturnRates::ExpectedReturns(double idle_seconds) const {
  const auto bin = static_cast<size_t>(IdleBinOf(idle_seconds));
  return expected_before_[bin] + base_[bin] * (idle_seconds - BinBegins()[bin]);
}

// Returns over time at risk, bin by bin; where little was seen a bin follows the one before it.
void ReturnRates::FitBase(std::span<const ReturnRecord> records, std::span<const double> scores) {
  std::array<double, kIdleBins> returns{};
  std::array<double, kIdleBins> reached{};  // summed score of records whose last bin this is
  std::array<double, kIdleBins> at_risk{};  // score x seconds
  const auto& begins = BinBegins();
  for (size_t i = 0; i < records.size(); ++i) {
    const auto bin = static_cast<size_t>(IdleBinOf(records[i].idle_seconds));
    returns[bin] += records[i].returned ? 1 : 0;
    reached[bin] += scores[i];
    at_risk[bin] += scores[i] * (records[i].idle_seconds - begins[bin]);
  }
  double passed = 0;
  double total_returns = 0;
  double total_at_risk = 0;
  for (size_t b = kIdleBins; b-- > 0;) {
    at_risk[b] += passed * (begins[b + 1] - begins[b]);
    passed += reached[b];
    total_returns += returns[b];
    total_at_risk += at_risk[b];
  }
  double expected = (total_returns + 0.1) / (total_at_risk + 0.1 / kPriorRate);
  for (size_t b = 0; b < kIdleBins; ++b) {
    base_[b] = (returns[b] + 1) / (at_risk[b] + 1 / expected);
    expected = base_[b] / kBinRatio;
  }
  for (size_t b = 1; b < kIdleBins; ++b) {
    expected_before_[b] = expected_before_[b - 1] + base_[b - 1] * (begins[b] - begins[b - 1]);
  }
}

// Observed over expected returns by value, given all other factors.
void ReturnRates::FitTrait(size_t trait, std::span<const ReturnRecord> records, std::span<double> scores) {
  auto& factors = factors_[trait];
  std::array<double, kTraitValues> observed{};
  std::array<double, kTraitValues> expected{};
  for (size_t i = 0; i < records.size(); ++i) {
    const uint8_t value = records[i].traits[trait];
    observed[value] += records[i].returned ? 1 : 0;
    expected[value] += ExpectedReturns(records[i].idle_seconds) * scores[i] / factors[value];
  }
  const auto before = factors;
  double weighted = 0;
  double weight = 0;
  for (size_t v = 0; v < factors.size(); ++v) {
    factors[v] = (observed[v] + kPriorReturns) / (expected[v] + kPriorReturns);
    weighted += expected[v] * factors[v];
    weight += expected[v];
  }
  if (weight > 0 && weighted > 0) {
    for (double& factor : factors) factor = std::clamp(factor * weight / weighted, 1 / kMostFactor, kMostFactor);
  }
  for (size_t i = 0; i < records.size(); ++i) {
    const uint8_t value = records[i].traits[trait];
    scores[i] *= factors[value] / before[value];
  }
}

void ReturnRates::Tabulate() {
  const auto& begins = BinBegins();
  for (int level = 0; level < kLevels; ++level) {
    const double score = std::exp2((level + 0.5 - 0.5 * kLevels) / kLevelsPerOctave);
    for (size_t from = 0; from < kIdleBins; ++from) {
      double alive = 1, returns = 0, held = 0, best = 0;
      for (size_t b = from; b < kIdleBins; ++b) {
        const double rate = base_[b] * score;
        const double width = (begins[b + 1] - begins[b]) * (b == from ? 0.5 : 1.0);
        const double leaves = alive * -std::expm1(-rate * width);
        returns += leaves;
        held += leaves / rate;
        alive -= leaves;
        best = std::max(best, returns / held);
      }
      worth_[static_cast<size_t>(level)][from] = best;
    }
  }
}

ReturnRates FitReturns(std::span<const ReturnRecord> records, const ReturnRates& before) {
  ReturnRates rates = before;
  std::vector<double> scores(records.size());
  for (size_t i = 0; i < records.size(); ++i) scores[i] = rates.Score(records[i].traits);
  rates.FitBase(records, scores);
  for (size_t t = 0; t < kTraits; ++t) rates.FitTrait(t, records, scores);
  rates.FitBase(records, scores);
  rates.Tabulate();
  return rates;
}

}  // namespace cachalot::kv
