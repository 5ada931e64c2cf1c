#include "cost/step_cost.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace cachalot::cost {
namespace {

constexpr double kForgetting = 0.998;   // a step counts half after about 350 others
constexpr double kGuessSpread = 1e4;    // the guess may be off by far more than a step's error
constexpr double kMeasuredSpread = 16;  // what was measured, by a few times that
constexpr double kMostSpread = 1e7;     // of a term that no step has moved for long
constexpr double kLeastUnit = 1e-3;     // of the largest term of a usual step: no term is beyond learning
constexpr double kLeastSeconds = 1e-9, kMostSeconds = 1e6;  // of a step worth learning from
constexpr double kClip = 4;                                 // times the usual error
constexpr double kMostError = 1;                            // no step counts as more than twice what was predicted
constexpr double kLeastScale = 1e-2;
constexpr uint64_t kTrustedFrom = 20;  // observations before any error is clipped
constexpr double kErrorMemory = 0.05;
constexpr double kLeastError = 0.02;     // no machine is steadier
constexpr double kMeasuredError = 0.05;  // the usual error of a measured curve, to begin with

// A step of a small model on a small machine: attention to 5,000 positions costs as much as the rest of a row.
constexpr StepCurve kGuess = {2e-3, 1e-3, 2e-7, 2e-7, 3e-4};

// What usual steps hold of each term.
constexpr std::array<double, kStepTerms.size()> kUsual = {1, 64, 65536, 65536, 16};

}  // namespace

StepCost::StepCost(const StepCurve& prior, double spread) {
  double largest = 0;
  for (size_t i = 0; i < unit_.size(); ++i) largest = std::max(largest, prior[i] * kUsual[i]);
  if (!(largest > 0)) largest = kGuess[1] * kUsual[1];
  for (size_t i = 0; i < unit_.size(); ++i) {
    unit_[i] = std::max(prior[i], largest * kLeastUnit / kUsual[i]);
    theta_[i] = prior[i] / unit_[i];
    spread_[i][i] = spread;
  }
}

StepCost::StepCost() : StepCost(kGuess, kGuessSpread) {}

StepCost::StepCost(const StepCurve& measured) : StepCost(measured, kMeasuredSpread) {
  observations_ = kTrustedFrom;
  usual_error_ = kMeasuredError;
  scaled_ = true;
}

// The seconds of each term, if theta were one.
StepCost::Vector StepCost::SecondsOf(const StepWork& work) const {
  return {unit_[0], unit_[1] * static_cast<double>(work.rows), unit_[2] * static_cast<double>(work.visible_full),
          unit_[3] * static_cast<double>(work.visible_sliding), unit_[4] * static_cast<double>(work.logit_rows)};
}

void StepCost::Observe(const StepWork& work, double seconds) {
  if (!(seconds >= kLeastSeconds && seconds <= kMostSeconds)) return;
  if (!scaled_) {
    const double guessed = Predict(work);
    for (double& unit : unit_) unit *= seconds / guessed;
    scaled_ = true;
  }
  // Relative to what was predicted: relative to what was measured, slow steps would count too little.
  const double scale = std::max(Predict(work), seconds * kLeastScale);
  Vector x = SecondsOf(work);
  double predicted = 0, uncertainty = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] /= scale;
    predicted += theta_[i] * x[i];
  }
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < x.size(); ++j) uncertainty += x[i] * spread_[i][j] * x[j];
  }
  double most = kMostError;
  if (observations_ >= kTrustedFrom) {
    const double likely = std::max(usual_error_, kLeastError) * std::sqrt(1 + std::max(uncertainty, 0.0));
    most = std::min(most, kClip * likely);
  }
  const double error = std::clamp(seconds / scale - predicted, -most, most);
  usual_error_ += (std::min(std::abs(error), 1.0) - usual_error_) * (observations_ == 0 ? 1 : kErrorMemory);
  ++observations_;
  Learn(x, error, uncertainty);
}

void StepCost::Learn(const Vector& x, double error, double uncertainty) {
  const double denominator = kForgetting + std::max(uncertainty, 0.0);
  Vector gain{};
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < x.size(); ++j) gain[i] += spread_[i][j] * x[j];
  }
  for (size_t i = 0; i < x.size(); ++i) theta_[i] += gain[i] / denominator * error;
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < x.size(); ++j) {
      spread_[i][j] = (spread_[i][j] - gain[i] * gain[j] / denominator) / kForgetting;
    }
  }
  // Forgetting alone would let the spread of a term that never occurs grow without bound.
  for (size_t i = 0; i < x.size(); ++i) {
    if (spread_[i][i] <= kMostSpread && spread_[i][i] > 0) continue;
    for (size_t j = 0; j < x.size(); ++j) spread_[i][j] = spread_[j][i] = 0;
    spread_[i][i] = kGuessSpread;
  }
}

StepCurve StepCost::curve() const {
  StepCurve result{};
  for (size_t i = 0; i < result.size(); ++i) result[i] = std::max(theta_[i], 0.0) * unit_[i];
  return result;
}

double StepCost::Added(const StepWork& work) const {
  const StepCurve c = curve();
  return c[1] * static_cast<double>(work.rows) + c[2] * static_cast<double>(work.visible_full) +
         c[3] * static_cast<double>(work.visible_sliding) + c[4] * static_cast<double>(work.logit_rows);
}

double StepCost::Predict(const StepWork& work) const { return curve()[0] + Added(work); }

Json CurveAsJson(const StepCurve& curve) {
  Json::Object object;
  for (size_t i = 0; i < curve.size(); ++i) object.emplace_back(std::string(kStepTerms[i]), curve[i]);
  return object;
}

Result<StepCurve> CurveFromJson(const Json& json) {
  StepCurve result{};
  for (size_t i = 0; i < result.size(); ++i) {
    const Json* member = json.Find(kStepTerms[i]);
    const std::optional<double> value = member == nullptr ? std::nullopt : member->AsNumber();
    if (!value || !(*value >= 0 && *value <= kMostSeconds)) {
      return Invalid(fmt::format("{}: expected a number of seconds, 0 to {}", kStepTerms[i], kMostSeconds));
    }
    result[i] = *value;
  }
  return result;
}

}  // namespace cachalot::cost
