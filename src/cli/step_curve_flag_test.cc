#include "cli/step_curve_flag.h"

#include <gtest/gtest.h>

namespace cachalot::cli {
namespace {

TEST(StepCurveFlag, ReadsWhatItWrites) {
  const StepCurve curve = {0.0123456789012345, 1e-5, 0, 3.3333333333333333e-9, 7};
  EXPECT_EQ(ParseStepCurve(FormatStepCurve(curve)).value(), curve);
}

TEST(StepCurveFlag, SaysWhatIsNone) {
  for (const char* text : {"1,2", "1,2,3,4,5,6", "1,2,3,4,", "1,2,x,4,5", "1e400,0,0,0,0", ""}) {
    EXPECT_EQ(
        ParseStepCurve(text).status().message(),
        std::string("--step-curve: expected 5 numbers of seconds with commas between them, got \"") + text + "\"");
  }
}

}  // namespace
}  // namespace cachalot::cli
