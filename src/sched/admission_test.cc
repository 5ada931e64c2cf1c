#include "sched/admission.h"

#include <gtest/gtest.h>

namespace cachalot::sched {
namespace {

constexpr CapacityView kCapacity{
    .context_tokens = 1000, .total_slots = 100, .taken_slots = 40, .max_sequences = 8, .running_sequences = 6};

TEST(Admission, AdmitsWhatFitsExactlyAndNoMore) {
  EXPECT_EQ(Admit({10, 10, 2, 60, 60}, kCapacity), Verdict::kAdmit);
  EXPECT_EQ(Admit({10, 10, 2, 61, 61}, kCapacity), Verdict::kWait);
  EXPECT_EQ(Admit({10, 10, 3, 60, 60}, kCapacity), Verdict::kWait);
}

TEST(Admission, WhatIsSharedIsNotCharged) {
  EXPECT_EQ(Admit({10, 10, 1, 90, 60}, kCapacity), Verdict::kAdmit);
  EXPECT_EQ(Admit({10, 10, 1, 90, 61}, kCapacity), Verdict::kWait);
}

TEST(Admission, WhatCanNeverRunIsNotKeptWaiting) {
  EXPECT_EQ(Admit({10, 10, 1, 100, 100}, kCapacity), Verdict::kWait);
  EXPECT_EQ(Admit({10, 10, 1, 101, 101}, kCapacity), Verdict::kPoolTooSmall);
  EXPECT_EQ(Admit({10, 10, 8, 10, 10}, kCapacity), Verdict::kWait);
  EXPECT_EQ(Admit({10, 10, 9, 10, 10}, kCapacity), Verdict::kTooManySequences);
}

TEST(Admission, TheContextBindsPromptAndOutputTogether) {
  EXPECT_EQ(Admit({990, 10, 1, 10, 10}, kCapacity), Verdict::kAdmit);
  EXPECT_EQ(Admit({990, 11, 1, 10, 10}, kCapacity), Verdict::kContextTooLong);
}

TEST(Caps, BindWhatIsHeldAndWhatIsAskedForTogether) {
  const Load load{100, 40, 2, 10}, held{50, 10, 3, 7}, none;
  const auto excess = [&](const Load& caps) { return FirstExcess(load, held, caps); };
  EXPECT_FALSE(excess({}));
  EXPECT_FALSE(excess({150, 50, 5, 17}));
  EXPECT_EQ(excess({149, 1, 1, 1})->part, LoadPart::kContext);
  EXPECT_EQ(excess({0, 49, 0, 0})->part, LoadPart::kOutput);
  EXPECT_EQ(excess({0, 0, 4, 0})->part, LoadPart::kSequences);
  const std::optional<Excess> blocks = excess({0, 0, 0, 16});
  ASSERT_TRUE(blocks);
  EXPECT_EQ(blocks->part, LoadPart::kBlocks);
  EXPECT_EQ(blocks->needed, 17u);
  EXPECT_EQ(blocks->allowed, 16u);
  EXPECT_FALSE(FirstExcess(load, none, {100, 40, 2, 10}));
}

}  // namespace
}  // namespace cachalot::sched
