#include "sched/future_peak.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace cachalot::sched {
namespace {

TEST(FuturePeak, OfLightLlmsExample) {
  const GrowthView batch[] = {{5, 4}, {4, 3}, {5, 3}, {3, 2}, {4, 2}};
  const uint64_t peaks[] = {9, 15, 23, 25, 31};
  for (size_t n = 1; n <= 5; ++n) EXPECT_EQ(FuturePeak(std::span(batch).first(n)), peaks[n - 1]);
  const GrowthView other_order[] = {{4, 2}, {5, 3}, {3, 2}, {5, 4}, {4, 3}};
  EXPECT_EQ(FuturePeak(other_order), 31u);
}

TEST(FuturePeak, WithOneMoreIsThatOfAllTogether) {
  SplitMix64 random(3);
  FuturePeakWith peak;
  for (int round = 0; round < 2000; ++round) {
    std::vector<GrowthView> batch(random.Below(12));
    for (GrowthView& view : batch) view = {random.Below(20), random.Below(8)};
    peak.SetBatch(batch);
    const GrowthView one{random.Below(20), random.Below(8)};
    batch.push_back(one);
    ASSERT_EQ(peak.With(one), FuturePeak(batch)) << round;
  }
}

TEST(FuturePeak, OfNothingIsNothing) { EXPECT_EQ(FuturePeak({}), 0u); }

TEST(OutputLengths, WithoutHistoryTheLimitIsExpected) {
  OutputLengths lengths;
  EXPECT_EQ(lengths.Predict(0, 500), 500u);
  EXPECT_EQ(lengths.Mean(), std::nullopt);
  lengths.Record(10);
  EXPECT_EQ(lengths.Predict(10, 500), 500u);
}

TEST(OutputLengths, PredictsAHighQuantileOfThoseThatCameAsFar) {
  OutputLengths lengths;
  for (uint32_t tokens = 1; tokens <= 100; ++tokens) lengths.Record(tokens);
  EXPECT_EQ(lengths.Predict(0, 500), 80u);
  EXPECT_EQ(lengths.Predict(50, 500), 90u);
  EXPECT_EQ(lengths.Predict(50, 60), 60u);
  EXPECT_EQ(lengths.Mean(), 51u);  // 50.5
}

TEST(OutputLengths, ForgetsTheOldest) {
  OutputLengths lengths;
  for (int i = 0; i < 512; ++i) lengths.Record(1000);
  for (int i = 0; i < 512; ++i) lengths.Record(10);
  EXPECT_EQ(lengths.Predict(0, 5000), 10u);
  EXPECT_EQ(lengths.Mean(), 10u);
}

}  // namespace
}  // namespace cachalot::sched
