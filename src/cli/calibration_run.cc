#include "cli/calibration_run.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "cli/bench_report.h"
#include "cost/step_cost.h"
#include "kv/kv_manager.h"

namespace cachalot::cli {
namespace {

constexpr int kLeastTimes = 3, kMostTimes = 25;
constexpr double kEnoughSeconds = 0.3;  // of one step's repetitions
constexpr int kPasses = 40;             // over the points: until the fit no longer changes
constexpr uint32_t kChunk = 512;        // rows by which a sequence grows to its depth

// Rows of equal sequences over a pool, without computing what stands before them.
class StepBench {
 public:
  StepBench(exec::Executor& executor, uint32_t slots, const Clock& clock)
      : executor_(executor), clock_(clock), kv_(kv::GeometryOf(executor.layout(), slots)) {}

  Result<CalibrationPoint> Measure(const CalibrationStep& step) {
    std::vector<SequenceId> sequences;
    for (uint32_t i = 0; i < step.sequences; ++i) sequences.push_back(kv_.Create());
    Result<CalibrationPoint> point = Time(step, sequences);
    for (const SequenceId sequence : sequences) kv_.Free(sequence);
    return point;
  }

 private:
  Result<CalibrationPoint> Time(const CalibrationStep& step, std::span<const SequenceId> sequences) {
    for (const SequenceId sequence : sequences) {
      for (uint64_t length = 0; length < step.depth;) {
        const auto more = static_cast<uint32_t>(std::min<uint64_t>(kChunk, step.depth - length));
        const kv::Growth growth{sequence, more, {}};
        CACHALOT_ASSIGN_OR_RETURN(kv::StepReservation reservation, kv_.Reserve({&growth, 1}));
        std::move(reservation).Commit();
        length += more;
      }
    }
    std::vector<kv::Growth> growth;
    for (const SequenceId sequence : sequences) growth.push_back({sequence, step.rows, {}});
    CACHALOT_ASSIGN_OR_RETURN(const kv::StepReservation reservation, kv_.Reserve(growth));
    CalibrationPoint point{.step = step, .work = WorkOf(step)};
    CACHALOT_ASSIGN_OR_RETURN(point.seconds, MedianSeconds(step, sequences));
    return point;
  }

  Result<double> MedianSeconds(const CalibrationStep& step, std::span<const SequenceId> sequences) {
    const auto groups = static_cast<uint32_t>(kv_.geometry().windows.size());
    const std::vector<TokenId> tokens(step.rows, 0);
    std::vector<std::vector<PageTableRef>> pages;
    std::vector<exec::SequenceRows> batch;
    for (const SequenceId sequence : sequences) {
      std::vector<PageTableRef>& of_sequence = pages.emplace_back();
      for (uint32_t group = 0; group < groups; ++group) of_sequence.push_back(kv_.Pages(sequence, group));
    }
    for (const std::vector<PageTableRef>& p : pages) batch.push_back({tokens, step.depth, p, step.logit_rows});
    CACHALOT_RETURN_IF_ERROR(executor_.Run({batch}).status());  // caches and workspaces are warm from now on
    std::vector<double> seconds;
    double spent = 0;
    for (int i = 0; i < kMostTimes && (i < kLeastTimes || spent < kEnoughSeconds); ++i) {
      const Nanos begin = clock_.Now();
      CACHALOT_RETURN_IF_ERROR(executor_.Run({batch}).status());
      seconds.push_back(ToSeconds(clock_.Now() - begin));
      spent += seconds.back();
    }
    return Median(std::move(seconds));
  }

  cost::StepWork WorkOf(const CalibrationStep& step) const {
    const cost::WorkShape shape(kv_.geometry().windows);
    cost::StepWork work;
    for (uint32_t i = 0; i < step.sequences; ++i) work += shape.Rows(step.depth, step.rows, step.logit_rows);
    return work;
  }

  exec::Executor& executor_;
  const Clock& clock_;
  kv::KvManager kv_;
};

}  // namespace

std::vector<CalibrationStep> PlanCalibration(const exec::Executor& executor, uint32_t slots) {
  const exec::StepLimits limits = executor.limits();
  const kv::KvGeometry geometry = kv::GeometryOf(executor.layout(), slots);
  const uint64_t context = executor.context_tokens();
  std::vector<CalibrationStep> plan;
  const auto add = [&](const CalibrationStep& step) {
    const uint64_t length = step.depth + step.rows;
    const bool fits = uint64_t{step.sequences} * step.rows <= limits.rows &&
                      uint64_t{step.sequences} * step.logit_rows <= limits.logit_rows && length <= context &&
                      kv::PeakSlots(geometry, length, std::max(step.rows, kChunk)) * step.sequences <= slots;
    if (fits && std::ranges::find(plan, step) == plan.end()) plan.push_back(step);
  };
  for (const uint64_t depth : {uint64_t{0}, context / 8, context / 3, context * 3 / 4}) {
    for (const uint32_t sequences : {1u, 2u, 4u, 8u, 16u, 32u}) add({sequences, 1, depth, 1});
    for (const uint32_t rows : {16u, 64u, 128u}) add({1, rows, depth, 1});
  }
  for (const uint32_t rows : {256u, 512u}) add({1, rows, 0, 1});
  for (const uint32_t rows : {16u, 64u}) add({1, rows, 0, rows});
  return plan;
}

Result<std::vector<CalibrationPoint>> MeasureCalibration(exec::Executor& executor, uint32_t slots, const Clock& clock,
                                                         const std::function<void(double)>& progress) {
  const std::vector<CalibrationStep> plan = PlanCalibration(executor, slots);
  StepBench bench(executor, slots, clock);
  std::vector<CalibrationPoint> points;
  for (const CalibrationStep& step : plan) {
    CACHALOT_ASSIGN_OR_RETURN(points.emplace_back(), bench.Measure(step));
    progress(static_cast<double>(points.size()) / static_cast<double>(plan.size()));
  }
  return points;
}

CalibrationFit FitCalibration(const std::vector<CalibrationPoint>& points) {
  cost::StepCost cost;
  for (int pass = 0; pass < kPasses; ++pass) {
    for (const CalibrationPoint& point : points) cost.Observe(point.work, point.seconds);
  }
  CalibrationFit fit{.curve = cost.curve()};
  // A term that no step had is not known.
  const auto none_has = [&](uint64_t cost::StepWork::*term) {
    return std::ranges::all_of(points, [&](const CalibrationPoint& point) { return point.work.*term == 0; });
  };
  if (none_has(&cost::StepWork::visible_full)) fit.curve[2] = 0;
  if (none_has(&cost::StepWork::visible_sliding)) fit.curve[3] = 0;
  for (const CalibrationPoint& point : points) {
    fit.predicted.push_back(cost.Predict(point.work));
    fit.relative_error += std::abs(fit.predicted.back() / point.seconds - 1) / static_cast<double>(points.size());
  }
  return fit;
}

Status CheckFit(const CalibrationFit& fit) {
  constexpr double kMostError = 0.5;  // 0.07 to 0.1 where nothing else runs
  if (fit.relative_error <= kMostError) return OkStatus();
  return Unavailable(
      fmt::format("steps took {:.0f} % more or less than any curve says, as if something else kept the machine busy: "
                  "expected at most {:.0f} %; nothing is stored",
                  fit.relative_error * 100, kMostError * 100));
}

}  // namespace cachalot::cli
