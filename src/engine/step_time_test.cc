// The cost of steps: learnt from durations, used for Retry-After and for what is evicted.
#include <cmath>
#include <future>

#include <gtest/gtest.h>

#include "base/random.h"
#include "cost/step_cost.h"
#include "cost/step_work.h"
#include "engine/engine_loop.h"
#include "engine/testing/engine_rig.h"

namespace cachalot::engine {
namespace {

constexpr StepCurve kTruth = {2e-3, 3e-4, 4e-7, 0, 5e-4};

// The fake model, each of whose steps takes what the curve says: with noise of 10 %, and one in 40 held up for 3 s.
class TimedExecutor final : public exec::Executor {
 public:
  TimedExecutor(exec::Executor& model, ManualClock& clock, const StepCurve& curve, bool noise)
      : model_(model), clock_(clock), curve_(curve), noise_(noise) {}

  const KvLayout& layout() const override { return model_.layout(); }
  uint32_t vocabulary() const override { return model_.vocabulary(); }
  uint64_t context_tokens() const override { return model_.context_tokens(); }
  exec::StepLimits limits() const override { return model_.limits(); }
  Result<exec::Logits> Run(const exec::Batch& batch) override {
    cost::StepWork work;
    const std::vector<uint32_t> windows = {0};
    for (const exec::SequenceRows& rows : batch.sequences) {
      work += cost::WorkShape(windows).Rows(rows.first_position, rows.tokens.size(), rows.logit_rows);
    }
    double seconds = cost::StepCost(curve_).Predict(work);
    if (noise_) seconds = seconds * (0.9 + 0.2 * random_.Uniform()) + (random_.Below(40) == 0 ? 3 : 0);
    clock_.Advance(Nanos(std::llround(seconds * 1e9)));
    return model_.Run(batch);
  }

 private:
  exec::Executor& model_;
  ManualClock& clock_;
  const StepCurve curve_;
  const bool noise_;
  SplitMix64 random_{7};
};

class StepTimeTest : public testing::Test {
 protected:
  void Make(EngineOptions options, bool noise, uint32_t slots = 2048, std::optional<StepCurve> curve = {}) {
    memory_ = std::move(exec::MakeCpuMemory(exec::FakeExecutor::LayoutFor({}).slot_bytes, slots)).value();
    model_.emplace(exec::FakeOptions{}, *memory_);
    executor_.emplace(*model_, clock_, kTruth, noise);
    engine_ = std::make_unique<Engine>(options, *executor_, *memory_, sampler_, ModelFacts{.step_curve = curve});
  }

  // Runs all of them in an engine loop; what it was told last.
  StepOutput RunInLoop(std::vector<GenerateRequest> requests) {
    std::promise<StepOutput> done;
    size_t open = requests.size();
    EngineLoop loop(*engine_, clock_, [&](StepOutput out) {
      for (const Rejection& rejection : out.rejections) refused_.push_back(rejection);
      open -= std::min(open, out.finishes.size() + out.rejections.size());
      if (out.predicted_seconds > 0) ratios_.push_back(ToSeconds(out.duration) / out.predicted_seconds);
      if (open == 0) done.set_value(std::move(out));
    });
    for (GenerateRequest& request : requests) loop.Submit(std::move(request));
    StepOutput last = done.get_future().get();
    loop.Stop();
    return last;
  }

  // The same as a loop that finds all of them in its first step.
  StepOutput RunBySteps(std::vector<GenerateRequest> requests) {
    StepInput input{.arrivals = std::move(requests)};
    StepOutput last;
    do {
      input.now = clock_.Now();
      const Nanos begun = input.now;
      last = engine_->Step(std::exchange(input, {}));
      input.last_duration = clock_.Now() - begun;
      if (last.predicted_seconds > 0) ratios_.push_back(ToSeconds(input.last_duration) / last.predicted_seconds);
    } while (!engine_->idle());
    return last;
  }

  static std::vector<GenerateRequest> Mixed(uint32_t count, uint64_t first_id = 1) {
    std::vector<GenerateRequest> requests;
    SplitMix64 random(first_id);
    for (uint64_t id = first_id; id < first_id + count; ++id) {
      const auto tokens = static_cast<uint32_t>(20 + random.Below(900));
      requests.push_back(Request(id, Tokens(tokens, id), static_cast<uint32_t>(5 + random.Below(60))));
    }
    return requests;
  }

  ManualClock clock_;
  std::unique_ptr<exec::DeviceMemory> memory_;
  std::optional<exec::FakeExecutor> model_;
  std::optional<TimedExecutor> executor_;
  exec::Sampler sampler_ = exec::FakeSampler();
  std::unique_ptr<Engine> engine_;
  std::vector<Rejection> refused_;
  std::vector<double> ratios_;  // measured over predicted, by step
};

TEST_F(StepTimeTest, LearnsTheCurveThroughNoiseAndHoldUps) {
  Make({.max_sequences = 16}, true);
  const StepCurve curve = RunBySteps(Mixed(600)).stats.step_curve;
  const cost::StepCost learnt(curve), truth(kTruth);
  const std::vector<uint32_t> windows = {0};
  const cost::WorkShape shape(windows);
  for (const uint64_t depth : {0, 400, 900}) {
    EXPECT_NEAR(learnt.Predict(shape.Rows(depth, 1, 1)) / truth.Predict(shape.Rows(depth, 1, 1)), 1, 0.25);
    EXPECT_NEAR(learnt.Predict(shape.Rows(depth, 500, 1)) / truth.Predict(shape.Rows(depth, 500, 1)), 1, 0.1);
  }
  ASSERT_GT(ratios_.size(), 300u);
  std::vector<double> late(ratios_.end() - 200, ratios_.end());
  std::ranges::sort(late);
  EXPECT_NEAR(late[late.size() / 2], 1, 0.1);
  EXPECT_GT(late[late.size() / 4], 0.7);
  EXPECT_LT(late[late.size() * 9 / 10], 1.25);
}

TEST_F(StepTimeTest, AStoredCurvePredictsTheFirstStep) {
  Make({}, false, 2048, kTruth);
  const StepOutput last = RunInLoop(Mixed(20));
  for (const double ratio : ratios_) EXPECT_NEAR(ratio, 1, 1e-3);
  for (size_t i = 0; i < kTruth.size(); ++i) EXPECT_NEAR(last.stats.step_curve[i], kTruth[i], kTruth[i] * 0.01 + 1e-9);
}

TEST_F(StepTimeTest, EqualInputsAndDurationsGiveEqualCurves) {
  const auto curve_of_run = [&] {
    Make({}, false);
    StepInput input;
    for (GenerateRequest& request : Mixed(10)) input.arrivals.push_back(std::move(request));
    StepOutput out;
    for (uint64_t step = 0; step == 0 || !engine_->idle(); ++step) {
      input.last_duration = Nanos(step * 1000);
      out = engine_->Step(std::exchange(input, {}));
    }
    return out.stats.step_curve;
  };
  EXPECT_EQ(curve_of_run(), curve_of_run());
}

TEST_F(StepTimeTest, AFullQueueTellsHowLongItWillTake) {
  // One after the other: what is refused at the start is told about when all the others will have been answered.
  Make({.max_queue = 9, .max_sequences = 1, .prefix_cache = false}, false, 2048, kTruth);
  const auto first = [](uint64_t id) { return Request(id, Tokens(300, id), 50); };
  StepInput input;
  for (uint64_t id = 1; id <= 12; ++id) input.arrivals.push_back(first(id));
  const StepOutput out = engine_->Step(std::move(input));
  ASSERT_EQ(out.rejections.size(), 2u);
  const Nanos begin = clock_.Now();
  uint64_t finished = 0;
  Nanos last{0};
  while (!engine_->idle()) {
    const Nanos step = clock_.Now();
    finished += engine_->Step({.last_duration = last}).finishes.size();
    last = clock_.Now() - step;
  }
  EXPECT_EQ(finished, 10u);
  for (const Rejection& refused : out.rejections) {
    EXPECT_EQ(refused.reason, RejectReason::kQueueFull);
    EXPECT_NEAR(refused.wait_seconds / ToSeconds(clock_.Now() - begin), 1, 0.1);
  }
}

TEST_F(StepTimeTest, ALongerQueueIsALongerWait) {
  double last = 0;
  for (const uint32_t queue : {2, 8, 32}) {
    Make({.max_queue = queue, .max_sequences = 2}, false, 2048, kTruth);
    StepInput input;
    for (uint64_t id = 1; id <= queue + 3; ++id) input.arrivals.push_back(Request(id, Tokens(100, id), 20));
    const StepOutput out = engine_->Step(std::move(input));
    ASSERT_EQ(out.rejections.size(), 1u);
    EXPECT_GT(out.rejections[0].wait_seconds, 1.5 * last);
    last = out.rejections[0].wait_seconds;
  }
}

TEST_F(StepTimeTest, AFailedStepTeachesNothing) {
  Make({}, false, 2048, kTruth);
  engine_->Step({.arrivals = {Request(1, Tokens(10, 1), 5)}});
  model_->FailRun(1, Internal("no"));
  EXPECT_EQ(engine_->Step({.last_duration = Nanos(0)}).predicted_seconds, 0);
  EXPECT_EQ(engine_->Step({.last_duration = Nanos(1'000'000'000'000)}).stats.step_curve, kTruth);
}

}  // namespace
}  // namespace cachalot::engine
