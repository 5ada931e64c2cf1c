// StepCurve: how long a step of the model takes, by what it computes. The plain numbers; cost/step_cost.h learns them.
// Threads:   plain data.
// Ownership: none.
// Invariant: none.
// Cost:      none.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace cachalot {

inline constexpr std::array<std::string_view, 5> kStepTerms = {"step", "row", "visible_full", "visible_sliding",
                                                               "logit_row"};

// Seconds per unit of each term of kStepTerms: per step, per row, and so on.
using StepCurve = std::array<double, kStepTerms.size()>;

}  // namespace cachalot
