#include "cli/step_curve_flag.h"

#include <gtest/gtest.h>

namespace cachalot::cli {
namespace {

TEST(StepCurveFlag, ReadsWhatItWrites) {
  const StepCurve curve = {0.0123456789012345, 1e-5, 0, 3.3333333333333333e-9, 7};
  EXPECT_EQ(ParseStepCurve(FormatStepCurve(curve)).value(), curve);
}

}  // namespace
}  // namespace cachalot::cli
