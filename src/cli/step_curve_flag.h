// ParseStepCurve reads what a step costs as numbers on the command line.
// Threads:   pure functions.
// Ownership: none.
// Invariant: ParseStepCurve(FormatStepCurve(c)) is c.
// Cost:      one pass over the text.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "base/step_curve.h"

namespace cachalot::cli {

// "0.01,5e-5,4e-9,0,2e-5": seconds, in the order of kStepTerms. kInvalid names --step-curve.
Result<StepCurve> ParseStepCurve(std::string_view text);
std::string FormatStepCurve(const StepCurve& curve);

}  // namespace cachalot::cli
