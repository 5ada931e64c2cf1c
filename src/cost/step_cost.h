// StepCost predicts how long a step takes from what it computes, and learns it from the steps that ran.
// Threads:   owned by one thread.
// Ownership: none.
// Invariant: deterministic; predictions are finite and never negative, whatever was observed.
// Cost:      Observe and Predict are O(1).
//
// seconds = c0 + c1 rows + c2 visible positions (full) + c3 visible positions (sliding) + c4 logit rows, fitted by
// recursive least squares with forgetting (Ljung, System Identification, section 11.2). A step that took far longer
// than predicted says more about its machine than about the curve: its error is clipped.
#pragma once

#include <array>
#include <cstdint>

#include "base/json.h"
#include "base/status.h"

namespace cachalot::cost {

struct StepWork {
  uint64_t rows = 0;
  uint64_t visible_full = 0;     // positions that all rows together see, in one layer of full attention
  uint64_t visible_sliding = 0;  // in one sliding layer
  uint64_t logit_rows = 0;
};

class StepCost {
 public:
  static constexpr size_t kTerms = 5;
  using Coefficients = std::array<double, kTerms>;  // seconds per unit; the first per step

  StepCost();
  explicit StepCost(const Coefficients& seed);

  void Observe(const StepWork& work, double seconds);
  double Predict(const StepWork& work) const;
  // How much longer a step gets by this work.
  double Added(const StepWork& work) const;

  Coefficients coefficients() const;
  uint64_t observations() const { return observations_; }

 private:
  using Vector = std::array<double, kTerms>;
  Vector theta_;                       // per scaled unit
  std::array<Vector, kTerms> spread_;  // covariance of theta_, scaled
  double usual_error_ = 0;             // mean absolute error of late
  uint64_t observations_ = 0;
};

// {"step":c0,"row":c1,"visible_full":c2,"visible_sliding":c3,"logit_row":c4}
Json CoefficientsAsJson(const StepCost::Coefficients& coefficients);
// kInvalid, naming the member, when one is missing, negative or no number.
Result<StepCost::Coefficients> CoefficientsFromJson(const Json& json);

}  // namespace cachalot::cost
