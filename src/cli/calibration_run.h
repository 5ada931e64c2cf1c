// CalibrationRun times steps of many shapes on an executor and fits the cost curve to them.
// Threads:   main thread.
// Ownership: borrows executor and clock; accounts for the whole pool, which nobody else may use meanwhile.
// Invariant: no step exceeds the executor's limits, its context or the pool.
// Cost:      every step a few times: as much as some thousand rows.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/step_curve.h"
#include "cost/step_work.h"
#include "exec/executor.h"

namespace cachalot::cli {

struct CalibrationStep {
  uint32_t sequences = 1;
  uint32_t rows = 1;        // of each
  uint64_t depth = 0;       // positions of each before them
  uint32_t logit_rows = 1;  // of each
  bool operator==(const CalibrationStep&) const = default;
};

struct CalibrationPoint {
  CalibrationStep step;
  cost::StepWork work;
  double seconds = 0;  // the median
};

struct CalibrationFit {
  StepCurve curve{};
  double relative_error = 0;      // mean
  std::vector<double> predicted;  // seconds, by point
};

// Steps that tell the terms of the curve apart, as far as `limits`, context and `slots` allow.
std::vector<CalibrationStep> PlanCalibration(const exec::Executor& executor, uint32_t slots);

// `progress` is called with the share of steps that are done.
Result<std::vector<CalibrationPoint>> MeasureCalibration(exec::Executor& executor, uint32_t slots, const Clock& clock,
                                                         const std::function<void(double)>& progress);

CalibrationFit FitCalibration(const std::vector<CalibrationPoint>& points);

// kUnavailable where the steps are so far from any curve that something else must have kept the machine busy.
Status CheckFit(const CalibrationFit& fit);

}  // namespace cachalot::cli
