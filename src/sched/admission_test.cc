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

}  // namespace
}  // namespace cachalot::sched
