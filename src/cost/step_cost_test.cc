#include "cost/step_cost.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"

namespace cachalot::cost {
namespace {

constexpr StepCurve kTruth = {2e-3, 3e-4, 5e-9, 1e-9, 4e-4};

double Seconds(const StepWork& work) {
  return kTruth[0] + kTruth[1] * static_cast<double>(work.rows) + kTruth[2] * static_cast<double>(work.visible_full) +
         kTruth[3] * static_cast<double>(work.visible_sliding) + kTruth[4] * static_cast<double>(work.logit_rows);
}

StepWork AnyStep(SplitMix64& random) {
  StepWork work{.rows = 1 + random.Below(512)};
  work.visible_full = work.rows * (1 + random.Below(4096));
  work.visible_sliding = work.rows * std::min<uint64_t>(512, 1 + random.Below(4096));
  work.logit_rows = 1 + random.Below(64);
  return work;
}

TEST(StepCost, LearnsTheCurveThroughNoise) {
  StepCost cost;
  SplitMix64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const StepWork work = AnyStep(random);
    cost.Observe(work, Seconds(work) * (0.95 + 0.1 * random.Uniform()));
  }
  for (int i = 0; i < 100; ++i) {
    const StepWork work = AnyStep(random);
    EXPECT_NEAR(cost.Predict(work) / Seconds(work), 1, 0.03);
  }
  EXPECT_NEAR(cost.curve()[1] / kTruth[1], 1, 0.05);
}

TEST(StepCost, AStepThatWasHeldUpTeachesLittle) {
  StepCost cost;
  SplitMix64 random(2);
  for (int i = 0; i < 2000; ++i) {
    const StepWork work = AnyStep(random);
    const bool held_up = i > 100 && i % 50 == 0;
    cost.Observe(work, Seconds(work) * (0.98 + 0.04 * random.Uniform()) + (held_up ? 10 : 0));
  }
  const StepWork work = AnyStep(random);
  EXPECT_NEAR(cost.Predict(work) / Seconds(work), 1, 0.1);
}

TEST(StepCost, WhatIsLearntOfSmallStepsIsNotLostInTheNoiseOfLargeOnes) {
  StepCost cost;
  SplitMix64 random(5);
  const StepWork decode{.rows = 1, .visible_full = 200, .logit_rows = 1};
  const StepWork prefill{.rows = 512, .visible_full = 512 * 2000, .logit_rows = 1};
  for (int i = 0; i < 4000; ++i) {
    const StepWork& work = i % 2 == 0 ? decode : prefill;
    cost.Observe(work, Seconds(work) * (0.8 + 0.4 * random.Uniform()));
  }
  EXPECT_NEAR(cost.Predict(decode) / Seconds(decode), 1, 0.05);
  EXPECT_NEAR(cost.Predict(prefill) / Seconds(prefill), 1, 0.05);
}

TEST(StepCost, PredictsTheMeanOfAnUnsteadyMachine) {
  StepCost cost;
  SplitMix64 random(6);
  for (int i = 0; i < 4000; ++i) {
    const StepWork work = AnyStep(random);
    cost.Observe(work, Seconds(work) * (1 + random.Uniform()));
  }
  double ratio = 0;
  for (int i = 0; i < 100; ++i) {
    const StepWork work = AnyStep(random);
    ratio += cost.Predict(work) / Seconds(work) / 100;
  }
  EXPECT_NEAR(ratio, 1.5, 0.1);
}

TEST(StepCost, ANewKindOfStepIsBelievedAfterALongTimeOfOthers) {
  StepCost cost;
  for (int i = 0; i < 5000; ++i) {
    const StepWork decode{.rows = 1, .visible_full = 100 + static_cast<uint64_t>(i), .logit_rows = 1};
    cost.Observe(decode, Seconds(decode));
  }
  const StepWork prefill{.rows = 512, .visible_full = 512 * 256, .logit_rows = 1};
  for (int i = 0; i < 3; ++i) cost.Observe(prefill, Seconds(prefill));
  EXPECT_NEAR(cost.Predict(prefill) / Seconds(prefill), 1, 0.1);
}

TEST(StepCost, TheFirstStepGivesTheScaleOfTheGuess) {
  for (const double slower : {1e-3, 1.0, 1e3}) {
    StepCost cost;
    const StepWork work{.rows = 100, .visible_full = 5000, .logit_rows = 1};
    cost.Observe(work, Seconds(work) * slower);
    const StepWork twice{.rows = 200, .visible_full = 20'000, .logit_rows = 2};
    EXPECT_NEAR(cost.Predict(work) / (Seconds(work) * slower), 1, 1e-6);
    EXPECT_NEAR(cost.Predict(twice) / (Seconds(twice) * slower), 1, 0.3);
  }
}

TEST(StepCost, WhatWasMeasuredIsKeptAndCorrected) {
  StepCost cost(kTruth);
  const StepWork work{.rows = 100, .visible_full = 1000, .logit_rows = 1};
  EXPECT_NEAR(cost.Predict(work), Seconds(work), 1e-12);
  for (int i = 0; i < 100; ++i) cost.Observe(work, 1.2 * Seconds(work));
  EXPECT_NEAR(cost.Predict(work) / Seconds(work), 1.2, 0.01);
}

TEST(StepCost, FollowsAMachineThatGetsSlower) {
  StepCost cost;
  SplitMix64 random(3);
  for (int i = 0; i < 6000; ++i) {
    const StepWork work = AnyStep(random);
    cost.Observe(work, Seconds(work) * (i < 3000 ? 1 : 2));
  }
  const StepWork work = AnyStep(random);
  EXPECT_NEAR(cost.Predict(work) / Seconds(work), 2, 0.1);
}

TEST(StepCost, TermsThatNeverOccurDoNoHarm) {
  StepCost cost;
  SplitMix64 random(4);
  for (int i = 0; i < 100'000; ++i) {
    const StepWork work{.rows = 1 + random.Below(8), .visible_full = 1 + random.Below(1000), .logit_rows = 1};
    cost.Observe(work, Seconds(work));
  }
  const StepWork work{.rows = 5, .visible_full = 500, .logit_rows = 1};
  EXPECT_NEAR(cost.Predict(work) / Seconds(work), 1, 0.01);
  EXPECT_GE(cost.Predict({.rows = 500, .visible_full = 5000, .visible_sliding = 100'000'000, .logit_rows = 64}), 0);
}

TEST(StepCost, AbsurdObservationsAreIgnored) {
  StepCost cost(kTruth);
  const StepWork work{.rows = 100, .visible_full = 1000, .logit_rows = 1};
  cost.Observe(work, -1);
  cost.Observe(work, 0);
  cost.Observe(work, std::numeric_limits<double>::infinity());
  cost.Observe(work, std::numeric_limits<double>::quiet_NaN());
  EXPECT_NEAR(cost.Predict(work) / Seconds(work), 1, 1e-9);
}

TEST(StepCost, StoredCoefficientsAreReadBack) {
  const Result<StepCurve> read = CurveFromJson(CurveAsJson(kTruth));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, kTruth);
  EXPECT_EQ(CurveFromJson(Json::Object{{"step", 1.0}}).status().message(),
            "row: expected a number of seconds, 0 to 1000000");
  Json::Object huge = *CurveAsJson(kTruth).AsObject();
  huge[1].second = 1e308;
  EXPECT_FALSE(CurveFromJson(huge).ok());
  EXPECT_FALSE(CurveFromJson(Json()).ok());
}

}  // namespace
}  // namespace cachalot::cost
