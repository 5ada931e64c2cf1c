#include "cost/step_cost.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace cachalot::cost {
namespace {

constexpr double kForgetting = 0.998;  // a step counts half after about 350 others
constexpr double kWideOpen = 1e6;      // spread of what is not known
constexpr double kMostSpread = 1e9;    // of a term that no step has moved for long
constexpr double kClip = 4;            // times the usual error
constexpr uint64_t kTrustedFrom = 20;  // observations before any error is clipped
constexpr double kErrorMemory = 0.05;

// Units in which the terms of usual steps are of one size.
constexpr StepCost::Coefficients kUnits = {1, 64, 65536, 65536, 16};
constexpr const char* kNames[] = {"step", "row", "visible_full", "visible_sliding", "logit_row"};

StepCost::Coefficients TermsOf(const StepWork& work) {
  return {1, static_cast<double>(work.rows) / kUnits[1], static_cast<double>(work.visible_full) / kUnits[2],
          static_cast<double>(work.visible_sliding) / kUnits[3], static_cast<double>(work.logit_rows) / kUnits[4]};
}

}  // namespace

StepCost::StepCost() : theta_{} {
  spread_ = {};
  for (size_t i = 0; i < kTerms; ++i) spread_[i][i] = kWideOpen;
}

StepCost::StepCost(const Coefficients& seed) : StepCost() {
  for (size_t i = 0; i < kTerms; ++i) {
    theta_[i] = seed[i] * kUnits[i];
    spread_[i][i] = 1;
  }
  observations_ = kTrustedFrom;
  usual_error_ = theta_[0];
}

void StepCost::Observe(const StepWork& work, double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return;
  const Vector x = TermsOf(work);
  Vector gain{};
  double denominator = kForgetting, predicted = 0;
  for (size_t i = 0; i < kTerms; ++i) {
    for (size_t j = 0; j < kTerms; ++j) gain[i] += spread_[i][j] * x[j];
    denominator += x[i] * gain[i];
    predicted += theta_[i] * x[i];
  }
  double error = seconds - predicted;
  if (observations_ >= kTrustedFrom) error = std::clamp(error, -kClip * usual_error_, kClip * usual_error_);
  usual_error_ += (std::abs(error) - usual_error_) * (observations_ == 0 ? 1 : kErrorMemory);
  ++observations_;
  for (size_t i = 0; i < kTerms; ++i) theta_[i] += gain[i] / denominator * error;
  for (size_t i = 0; i < kTerms; ++i) {
    for (size_t j = 0; j < kTerms; ++j) spread_[i][j] = (spread_[i][j] - gain[i] * gain[j] / denominator) / kForgetting;
  }
  // Forgetting alone would let the spread of a term that never occurs grow without bound.
  for (size_t i = 0; i < kTerms; ++i) {
    if (spread_[i][i] <= kMostSpread) continue;
    for (size_t j = 0; j < kTerms; ++j) spread_[i][j] = spread_[j][i] = 0;
    spread_[i][i] = kWideOpen;
  }
}

StepCost::Coefficients StepCost::coefficients() const {
  Coefficients result{};
  for (size_t i = 0; i < kTerms; ++i) result[i] = std::max(theta_[i], 0.0) / kUnits[i];
  return result;
}

double StepCost::Added(const StepWork& work) const {
  const Coefficients c = coefficients();
  return c[1] * static_cast<double>(work.rows) + c[2] * static_cast<double>(work.visible_full) +
         c[3] * static_cast<double>(work.visible_sliding) + c[4] * static_cast<double>(work.logit_rows);
}

double StepCost::Predict(const StepWork& work) const { return coefficients()[0] + Added(work); }

Json CoefficientsAsJson(const StepCost::Coefficients& coefficients) {
  Json::Object object;
  for (size_t i = 0; i < StepCost::kTerms; ++i) object.emplace_back(kNames[i], coefficients[i]);
  return object;
}

Result<StepCost::Coefficients> CoefficientsFromJson(const Json& json) {
  StepCost::Coefficients result{};
  for (size_t i = 0; i < StepCost::kTerms; ++i) {
    const Json* member = json.Find(kNames[i]);
    const std::optional<double> value = member == nullptr ? std::nullopt : member->AsNumber();
    if (!value || !(*value >= 0) || !std::isfinite(*value)) {
      return Invalid(fmt::format("{}: expected a number of seconds, 0 or more", kNames[i]));
    }
    result[i] = *value;
  }
  return result;
}

}  // namespace cachalot::cost
