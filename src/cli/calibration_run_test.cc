#include "cli/calibration_run.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "cost/step_cost.h"
#include "exec/testing/executor_rig.h"
#include "exec/testing/fake_executor.h"
#include "exec/testing/tiny_model.h"

namespace cachalot::cli {
namespace {

constexpr StepCurve kTruth = {2e-3, 3e-4, 5e-7, 2e-7, 4e-4};

// An executor that only lets time pass, by the curve.
class CurveExecutor final : public exec::Executor {
 public:
  CurveExecutor(const exec::FakeOptions& options, ManualClock& clock)
      : options_(options), layout_(exec::FakeExecutor::LayoutFor(options)), shape_(options_.windows), clock_(clock) {}

  const KvLayout& layout() const override { return layout_; }
  uint32_t vocabulary() const override { return options_.vocabulary; }
  uint64_t context_tokens() const override { return options_.context_tokens; }
  exec::StepLimits limits() const override { return options_.limits; }
  Result<exec::Logits> Run(const exec::Batch& batch) override {
    cost::StepWork work;
    for (const exec::SequenceRows& rows : batch.sequences) {
      work += shape_.Rows(rows.first_position, rows.tokens.size(), rows.logit_rows);
    }
    EXPECT_LE(work.rows, options_.limits.rows);
    EXPECT_LE(work.logit_rows, options_.limits.logit_rows);
    clock_.Advance(Nanos(std::llround(cost::StepCost(kTruth).Predict(work) * 1e9)));
    if (++runs_ % 5 == 0) clock_.Advance(Nanos(1'000'000'000));  // held up
    return exec::Logits{};
  }

 private:
  const exec::FakeOptions options_;
  const KvLayout layout_;
  const cost::WorkShape shape_;
  ManualClock& clock_;
  uint64_t runs_ = 0;
};

TEST(CalibrationRun, FindsTheCurveOfAMachineThatIsHeldUpNowAndThen) {
  ManualClock clock;
  CurveExecutor executor({.context_tokens = 8192, .limits = {512, 64}, .windows = {0, 0, 512, 512}}, clock);
  double done = 0;
  const auto points = MeasureCalibration(executor, 8192, clock, [&](double share) { done = share; });
  ASSERT_TRUE(points.ok()) << points.status().message();
  EXPECT_EQ(done, 1);
  const CalibrationFit fit = FitCalibration(*points);
  EXPECT_LT(fit.relative_error, 0.005);
  for (size_t i = 0; i < kTruth.size(); ++i) EXPECT_NEAR(fit.curve[i] / kTruth[i], 1, 0.05) << kStepTerms[i];
  EXPECT_TRUE(CheckFit(fit).ok());
}

TEST(CalibrationRun, WhatNoCurveFitsIsNoMeasurement) {
  ManualClock clock;
  CurveExecutor executor({.context_tokens = 8192, .limits = {512, 64}, .windows = {0, 0, 512, 512}}, clock);
  auto points = MeasureCalibration(executor, 8192, clock, [](double) {});
  ASSERT_TRUE(points.ok()) << points.status().message();
  for (size_t i = 0; i < points->size(); i += 3) (*points)[i].seconds *= 30;
  const Status status = CheckFit(FitCalibration(*points));
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_NE(status.message().find("as if something else kept the machine busy"), std::string::npos) << status.message();
}

TEST(CalibrationRun, KeepsToWhatThereIs) {
  ManualClock clock;
  for (const exec::StepLimits limits : {exec::StepLimits{1, 1}, {20, 3}, {512, 64}}) {
    for (const uint64_t context : {16, 300, 100'000}) {
      for (const uint32_t slots : {40, 200, 8000}) {
        CurveExecutor executor({.context_tokens = context, .limits = limits, .windows = {0, 64}}, clock);
        const auto points = MeasureCalibration(executor, slots, clock, [](double) {});
        ASSERT_TRUE(points.ok()) << points.status().message();
        EXPECT_FALSE(points->empty());
        EXPECT_TRUE(std::isfinite(FitCalibration(*points).relative_error));
      }
    }
  }
}

TEST(CalibrationRun, MeasuresARealModel) {
  for (const char* architecture : {"llama", "gemma3"}) {
    const exec::TinyModelSpec spec{.architecture = architecture, .context = 512};
    exec::ExecutorRig rig(exec::MakeTinyModel(spec), {.limits = {256, 16}, .slots = 512});
    SteadyClock clock;
    const auto points = MeasureCalibration(rig.executor(), 512, clock, [](double) {});
    ASSERT_TRUE(points.ok()) << points.status().message();
    EXPECT_GT(points->size(), 15u);
    const CalibrationFit fit = FitCalibration(*points);
    EXPECT_EQ(fit.predicted.size(), points->size());
    for (const double seconds : fit.predicted) EXPECT_GT(seconds, 0);
    // What a busy machine's clock says of each term is not asserted; but where no layer slides, that term is zero.
    if (rig.model().layout().groups.back().window == 0) {
      EXPECT_EQ(fit.curve[3], 0) << architecture;
    }
  }
}

}  // namespace
}  // namespace cachalot::cli
