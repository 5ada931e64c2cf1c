#include "kv/eviction_returns.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace cachalot::kv {
namespace {

ReturnRates FitFully(const std::vector<ReturnRecord>& records) {
  ReturnRates rates;
  for (int i = 0; i < 20; ++i) rates = FitReturns(records, rates);
  return rates;
}

TEST(ReturnRates, IdleBinsFollowEachOtherWithoutGap) {
  EXPECT_EQ(IdleBinOf(0), 0);
  for (int bin = 1; bin < kIdleBins; ++bin) {
    EXPECT_EQ(IdleBinOf(IdleBinBegin(bin)), bin);
    EXPECT_EQ(IdleBinOf(std::nextafter(IdleBinBegin(bin), 0)), bin - 1);
  }
  EXPECT_EQ(IdleBinOf(1e18), kIdleBins - 1);
}

TEST(ReturnRates, RecoversTheRatiosOfConstantRatesThroughCensoring) {
  // Turns 0, 1, 2 return at 1, 2 and 4 per 400 s; a third of all is lost from sight early, independently.
  std::vector<ReturnRecord> records;
  SplitMix64 random(3);
  for (int i = 0; i < 30'000; ++i) {
    const auto turn = static_cast<uint32_t>(i % 3);
    const double rate = std::exp2(turn) / 400;
    const double returns = -std::log1p(-random.Uniform()) / rate;
    const double lost = random.Below(3) == 0 ? 200 * random.Uniform() : 2000;
    records.push_back({TurnTraits(turn, Nanos(0), 1000), std::min(returns, lost), returns <= lost});
    records.back().traits[1] = 0;
  }
  const ReturnRates rates = FitFully(records);
  const double first = rates.Score(records[0].traits);
  EXPECT_NEAR(rates.Score(records[1].traits) / first, 2, 0.1);
  EXPECT_NEAR(rates.Score(records[2].traits) / first, 4, 0.2);
  // A constant rate is worth the same at any idle time, while there is data.
  const int level = ReturnRates::LevelOf(first);
  EXPECT_NEAR(rates.Worth(level, IdleBinOf(10)) / rates.Worth(level, IdleBinOf(100)), 1, 0.15);
}

TEST(ReturnRates, WhatReturnsAfterAMinuteIsWorthMoreAtHalfAMinuteThanLater) {
  std::vector<ReturnRecord> records;
  SplitMix64 random(5);
  for (int i = 0; i < 2000; ++i) {
    const bool returned = i % 2 == 0;
    records.push_back({TurnTraits(0, Nanos(0), 1000), returned ? 50 + 20 * random.Uniform() : 3000, returned});
  }
  const ReturnRates rates = FitFully(records);
  const int level = ReturnRates::LevelOf(1);
  EXPECT_GT(rates.Worth(level, IdleBinOf(40)), rates.Worth(level, IdleBinOf(1)));
  EXPECT_GT(rates.Worth(level, IdleBinOf(1)), rates.Worth(level, IdleBinOf(200)));
}

TEST(ReturnRates, StaysFiniteWhateverTheRecords) {
  SplitMix64 random(9);
  for (int round = 0; round < 50; ++round) {
    std::vector<ReturnRecord> records(random.Below(300));
    for (ReturnRecord& record : records) {
      for (uint8_t& trait : record.traits) trait = static_cast<uint8_t>(random.Below(2) * random.Below(kTraitValues));
      record.returned = random.Below(3) == 0;
      record.idle_seconds = random.Below(2) == 0 ? 0 : std::exp(40 * random.Uniform() - 10);
    }
    const ReturnRates rates = FitFully(records);
    for (int level = 0; level < kLevels; ++level) {
      for (int bin = 0; bin < kIdleBins; ++bin) {
        ASSERT_TRUE(std::isfinite(rates.Worth(level, bin)));
        ASSERT_GT(rates.Worth(level, bin), 0);
      }
    }
    for (const ReturnRecord& record : records) ASSERT_TRUE(std::isfinite(rates.Score(record.traits)));
  }
}

}  // namespace
}  // namespace cachalot::kv
