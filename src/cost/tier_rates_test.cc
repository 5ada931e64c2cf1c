#include "cost/tier_rates.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/random.h"

namespace cachalot::cost {
namespace {

constexpr TierId kDisk = TierId::kDisk;
constexpr Direction kUp = Direction::kUp;
constexpr TierRate kTruth = {3e-4, 2e8};

TierRateTable Table(TierId tier, Direction direction, TierRate rate) {
  TierRateTable table;
  table[TierIndex(tier)][static_cast<size_t>(direction)] = rate;
  return table;
}

// A link, and a clock that goes on by as long as each transfer takes.
struct Link {
  TierRates rates;
  SplitMix64 random{1};
  Nanos now{0};

  void Move(const TierRate& truth, uint64_t bytes, uint64_t queued, double factor = 1) {
    const double seconds = TransferSeconds(truth, bytes, queued) * factor;
    now += Nanos(static_cast<int64_t>(seconds * 1e9));
    rates.Observe(kDisk, kUp, {bytes, queued, seconds}, now);
  }
  void MoveAny(const TierRate& truth, double factor = 1) {
    const uint64_t queued = random.Below(3) == 0 ? random.Below(8 << 20) : 0;
    Move(truth, 4096 + random.Below(2 << 20), queued, factor);
  }
  double Ratio(const TierRate& truth, uint64_t bytes, uint64_t queued = 0) const {
    return rates.Predict(kDisk, kUp, bytes, queued, now) / TransferSeconds(truth, bytes, queued);
  }
};

TEST(TierRates, LearnsLatencyAndBandwidthThroughNoise) {
  Link link;
  for (int i = 0; i < 500; ++i) link.MoveAny(kTruth, 0.9 + 0.2 * link.random.Uniform());
  EXPECT_NEAR(link.Ratio(kTruth, 4096), 1, 0.15);
  EXPECT_NEAR(link.Ratio(kTruth, 1 << 20), 1, 0.05);
  EXPECT_NEAR(link.Ratio(kTruth, 64 << 20), 1, 0.1);
  EXPECT_NEAR(link.Ratio(kTruth, 1 << 20, 16 << 20), 1, 0.1);
}

TEST(TierRates, WhatIsQueuedBeforeIsWaitedFor) {
  const TierRates rates(Table(kDisk, kUp, {0.5, 1e6}));
  EXPECT_NEAR(rates.Predict(kDisk, kUp, 1'000'000, 0, Nanos(0)), 1.5, 1e-9);
  EXPECT_NEAR(rates.Predict(kDisk, kUp, 1'000'000, 2'000'000, Nanos(0)), 3.5, 1e-9);
}

TEST(TierRates, ATransferThatWasHeldUpTeachesLittle) {
  Link link;
  for (int i = 0; i < 400; ++i) {
    const bool held_up = i > 50 && i % 25 == 0;
    link.MoveAny(kTruth, (0.95 + 0.1 * link.random.Uniform()) * (held_up ? 100 : 1));
    if (i > 100) {
      EXPECT_LT(link.Ratio(kTruth, 1 << 20), 1.5) << i;
    }
  }
  for (int i = 0; i < 10; ++i) link.MoveAny(kTruth);
  EXPECT_NEAR(link.Ratio(kTruth, 1 << 20), 1, 0.1);
}

TEST(TierRates, FollowsTheLoadBothWays) {
  Link link;
  for (int i = 0; i < 200; ++i) link.MoveAny(kTruth);
  const TierRate loaded = {3e-3, 2e7};
  for (int i = 0; i < 60; ++i) link.MoveAny(loaded);
  EXPECT_NEAR(link.Ratio(loaded, 1 << 20), 1, 0.2);
  for (int i = 0; i < 60; ++i) link.MoveAny(kTruth);
  EXPECT_NEAR(link.Ratio(kTruth, 1 << 20), 1, 0.2);
}

TEST(TierRates, TheFirstTransferGivesTheScaleOfTheGuess) {
  for (const double slower : {1e-3, 1.0, 1e4}) {
    Link link;
    const TierRate truth = {2e-4 * slower, 5e8 / slower};
    link.Move(truth, 1 << 20, 0);
    EXPECT_NEAR(link.Ratio(truth, 1 << 20), 1, 1e-6);
    EXPECT_NEAR(link.Ratio(truth, 4 << 20), 1, 0.3);
  }
}

TEST(TierRates, WhatWasMeasuredBeforeIsBelievedUntilTransfersSayOtherwise) {
  Link link{.rates = TierRates(Table(kDisk, kUp, kTruth))};
  EXPECT_NEAR(link.Ratio(kTruth, 1 << 20), 1, 1e-9);
  EXPECT_EQ(link.rates.Measured(Nanos(0)), Table(kDisk, kUp, link.rates.Rate(kDisk, kUp, Nanos(0))));
  const TierRate half = {6e-4, 1e8};
  for (int i = 0; i < 50; ++i) link.MoveAny(half);
  EXPECT_NEAR(link.Ratio(half, 1 << 20), 1, 0.05);
}

TEST(TierRates, ALinkThatWasSlowIsTriedAgainAfterAWhile) {
  Link link{.rates = TierRates(Table(kDisk, kUp, kTruth))};
  const TierRate slow = {0.1, 1e6};
  for (int i = 0; i < 200; ++i) link.MoveAny(slow);
  EXPECT_NEAR(link.Ratio(slow, 1 << 20), 1, 0.1);
  link.now += std::chrono::minutes(20);
  EXPECT_NEAR(link.Ratio(kTruth, 1 << 20), 1, 0.1);
  for (int i = 0; i < 50; ++i) link.MoveAny(slow);  // and believed again when it still is
  EXPECT_NEAR(link.Ratio(slow, 1 << 20), 1, 0.2);
}

TEST(TierRates, TransfersOfOneSizeSpoilNothing) {
  Link link;
  for (int i = 0; i < 20'000; ++i) link.Move(kTruth, 1 << 20, 0, 0.9 + 0.2 * link.random.Uniform());
  EXPECT_NEAR(link.Ratio(kTruth, 1 << 20), 1, 0.05);
  EXPECT_NEAR(link.Ratio(kTruth, 4 << 20), 1, 0.2);
  for (int i = 0; i < 20; ++i) link.Move(kTruth, 16 << 10, 0);
  EXPECT_NEAR(link.Ratio(kTruth, 16 << 10), 1, 0.1);
  EXPECT_NEAR(link.Ratio(kTruth, 8 << 20), 1, 0.3);
}

TEST(TierRates, LinksAreLearntApart) {
  Link link;
  const TierRate before = link.rates.Rate(kDisk, Direction::kDown, Nanos(0));
  for (int i = 0; i < 20; ++i) link.MoveAny(kTruth);
  EXPECT_EQ(link.rates.Rate(kDisk, Direction::kDown, link.now), before);
  const TierRateTable measured = link.rates.Measured(link.now);
  EXPECT_TRUE(measured[TierIndex(kDisk)][0].has_value());
  EXPECT_FALSE(measured[TierIndex(kDisk)][1].has_value());
  EXPECT_FALSE(measured[TierIndex(TierId::kHost)][0].has_value());
}

TEST(TierRates, AbsurdTransfersDoNoHarm) {
  Link link{.rates = TierRates(Table(kDisk, kUp, kTruth))};
  for (const double seconds :
       {-1.0, 0.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    link.rates.Observe(kDisk, kUp, {1 << 20, 0, seconds}, Nanos(0));
  }
  link.rates.Observe(kDisk, kUp, {0, 0, 1}, Nanos(0));
  EXPECT_NEAR(link.Ratio(kTruth, 1 << 20), 1, 1e-9);
  SplitMix64 random(9);
  for (int i = 0; i < 5000; ++i) {  // nor do any numbers at all
    const double seconds = std::exp(40 * random.Uniform() - 20);
    const Nanos now(static_cast<int64_t>(random.Below(uint64_t{1} << 50)));
    link.rates.Observe(kDisk, kUp, {random() >> random.Below(64), random() >> random.Below(64), seconds}, now);
    const double predicted = link.rates.Predict(kDisk, kUp, 1 << 20, 0, now);
    ASSERT_TRUE(std::isfinite(predicted) && predicted > 0) << i;
  }
}

TEST(TierRates, StoredRatesAreReadBackAndWrongOnesNamed) {
  TierRateTable table = Table(kDisk, kUp, kTruth);
  table[TierIndex(TierId::kRemote)][1] = TierRate{0, 1e7};
  const Result<TierRateTable> read = TierRatesFromJson(TierRatesAsJson(table));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(*read, table);
  const auto error = [](const char* text) { return TierRatesFromJson(ParseJson(text).value()).status().message(); };
  EXPECT_EQ(error("3"), "expected an object, got integer");
  EXPECT_EQ(error(R"({"tape":{}})"), "tape: expected one of host, disk, remote");
  EXPECT_EQ(error(R"({"disk":[]})"), "disk: expected an object");
  EXPECT_EQ(error(R"({"disk":{"out":{}}})"), "disk: out: expected one of up, down");
  EXPECT_EQ(error(R"({"disk":{"up":{}}})"), "disk: up: latency: expected a number of seconds, 0 to 1000000");
  EXPECT_EQ(error(R"({"disk":{"up":{"latency":0,"bytes_per_second":0}}})"),
            "disk: up: bytes_per_second: expected a number, 1 to 1000000000000000");
}

}  // namespace
}  // namespace cachalot::cost
