#include "sched/return_rates.h"

#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace cachalot::sched {
namespace {

Digest Key(uint64_t number) {
  Digest key{};
  for (size_t i = 0; i < 8; ++i) key[i] = static_cast<uint8_t>(number >> (8 * i));
  return key;
}

TEST(ReturnRates, BeginsWithWhatIsBelieved) {
  const ReturnRates rates;
  EXPECT_EQ(rates.Of(Leaver::kSession), 0.7);
  EXPECT_EQ(rates.Of(Leaver::kHistory), 0.3);
  EXPECT_EQ(rates.Of(Leaver::kBlock), 0.3);
}

TEST(ReturnRates, LearnsWhateverShareReturns) {
  for (const double share : {0.0, 0.1, 0.5, 0.9, 1.0}) {
    ReturnRates rates;
    SplitMix64 random(1);
    std::vector<bool> returns_later(3000);
    for (uint64_t i = 0; i < 3000; ++i) {
      rates.Left(Leaver::kHistory, Key(i));
      if (random.Uniform() < share) {
        returns_later[i] = random.Below(2) == 0;
        if (!returns_later[i]) rates.Seen(std::vector<Digest>{Key(1'000'000), Key(i)});
      }
      if (i >= 20 && returns_later[i - 20]) rates.Seen(std::vector<Digest>{Key(i - 20)});
    }
    EXPECT_NEAR(rates.Of(Leaver::kHistory), share, 0.08) << share;
    EXPECT_EQ(rates.Of(Leaver::kSession), 0.7);
  }
}

TEST(ReturnRates, ForgetsWhatWasOnce) {
  ReturnRates rates;
  for (uint64_t i = 0; i < 3000; ++i) {
    rates.Left(Leaver::kSession, Key(i));
    if (i < 2000) rates.Seen(std::vector<Digest>{Key(i)});
    if (i == 1999) {
      EXPECT_GT(rates.Of(Leaver::kSession), 0.95);
    }
  }
  EXPECT_LT(rates.Of(Leaver::kSession), 0.1);
}

TEST(ReturnRates, ALeavingIsAnsweredOnceAndCountedOnce) {
  ReturnRates once, often;
  for (ReturnRates* rates : {&once, &often}) {
    rates->Left(Leaver::kPrompt, Key(1));
    rates->Seen(std::vector<Digest>{Key(1)});
  }
  often.Seen(std::vector<Digest>{Key(1), Key(1)});
  EXPECT_EQ(once.Of(Leaver::kPrompt), often.Of(Leaver::kPrompt));
  once.Left(Leaver::kPrompt, Key(2));
  often.Left(Leaver::kPrompt, Key(2));
  often.Left(Leaver::kPrompt, Key(2));
  EXPECT_EQ(once.Of(Leaver::kPrompt), often.Of(Leaver::kPrompt));
}

TEST(ReturnRates, WhatIsLeftLongAgoIsGivenUpAndWhatWasLeftAgainIsNot) {
  ReturnRates rates;
  rates.Left(Leaver::kHistory, Key(0));
  rates.Left(Leaver::kHistory, Key(1));
  rates.Seen(std::vector<Digest>{Key(1)});
  for (uint64_t i = 2; i < 4097; ++i) rates.Left(Leaver::kHistory, Key(i));
  rates.Left(Leaver::kHistory, Key(1));  // again
  rates.Left(Leaver::kHistory, Key(5000));
  const double before = rates.Of(Leaver::kHistory);
  rates.Seen(std::vector<Digest>{Key(0)});
  EXPECT_EQ(rates.Of(Leaver::kHistory), before);
  rates.Seen(std::vector<Digest>{Key(1)});
  EXPECT_GT(rates.Of(Leaver::kHistory), before);
}

}  // namespace
}  // namespace cachalot::sched
