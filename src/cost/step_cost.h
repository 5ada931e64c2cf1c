// StepCost predicts how long a step takes from what it computes, and learns it from the steps that ran.
// Threads:   owned by one thread.
// Ownership: none.
// Invariant: deterministic; predictions are finite and never negative, whatever was observed.
// Cost:      Observe and Predict are O(1), without allocation.
//
// seconds = c0 + c1 rows + c2 visible positions (full) + c3 visible positions (sliding) + c4 logit rows, fitted by
// recursive least squares of the relative error with forgetting (Ljung, System Identification, section 11.2), so that
// steps of a millisecond and of seconds count alike. A step that took far longer than predicted says more about its
// machine than about the curve: its error is clipped.
#pragma once

#include <array>
#include <cstdint>

#include "base/json.h"
#include "base/status.h"
#include "base/step_curve.h"
#include "cost/step_work.h"

namespace cachalot::cost {

class StepCost {
 public:
  // Knows nothing of the machine: a guess at the proportions, whose scale the first step gives.
  StepCost();
  // Begins with what was measured before.
  explicit StepCost(const StepCurve& measured);

  void Observe(const StepWork& work, double seconds);
  double Predict(const StepWork& work) const;
  // How much longer a step gets by this work.
  double Added(const StepWork& work) const;

  StepCurve curve() const;

 private:
  using Vector = std::array<double, kStepTerms.size()>;
  StepCost(const StepCurve& prior, double spread);
  Vector SecondsOf(const StepWork& work) const;
  void Learn(const Vector& x, double error, double uncertainty);

  StepCurve unit_{};                                // seconds per unit; the curve is theta_ times this
  Vector theta_;                                    // dimensionless; begins at one
  std::array<Vector, kStepTerms.size()> spread_{};  // covariance of theta_, over the variance of a step's error
  double usual_error_ = 0;                          // mean absolute relative error of late
  bool scaled_ = false;                             // unit_ is of this machine
  uint64_t observations_ = 0;
};

// {"step":c0,"row":c1,"visible_full":c2,"visible_sliding":c3,"logit_row":c4}
Json CurveAsJson(const StepCurve& curve);
// kInvalid, naming the member, when one is missing, negative or no number.
Result<StepCurve> CurveFromJson(const Json& json);

}  // namespace cachalot::cost
