// Paranoid mode: hits that are computed again and compared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing/engine_rig.h"

namespace cachalot::engine {
namespace {

TEST(HitCheck, SoundHitsAreVerifiedAndNothingElseChanges) {
  exec::FakeOptions model;
  model.windows = {0, 24, 24};
  Rig rig({.max_sequences = 10, .prefill_chunk = 13, .verify_hits = 1}, model, 400);
  PromptMaker prompts(1, 120);
  for (uint64_t id = 1; id <= 60; ++id) {
    const GenerateRequest request = Request(id, prompts.Next(), 5);
    rig.Arrive(request);
    if (id % 3 == 0) rig.RunToEnd();
  }
  rig.RunToEnd();
  const StepOutput out = rig.Step();
  EXPECT_GT(out.stats.hits_verified, 5u);
  EXPECT_EQ(out.stats.requests_finished, 60u);
  EXPECT_EQ(out.stats.in_use_slots(), 0u);
  EXPECT_EQ(out.stats.promised_slots, 0u);
}

// A sliding model may go on in the middle of a block although the window before that block's beginning has lost its
// first one.
TEST(HitCheck, AHitWhoseWholeBlocksCannotBeHeldIsNotVerified) {
  uint64_t verified = 0, not_verified = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    exec::FakeOptions model;
    model.windows = {0, 9 + static_cast<uint32_t>(seed % 30)};
    Rig rig({.max_sequences = 6, .prefill_chunk = 40, .verify_hits = 1}, model, 60);
    PromptMaker prompts(seed, 120);
    for (uint64_t id = 1; id <= 80; ++id) {
      rig.Arrive(Request(id, prompts.Next(), static_cast<uint32_t>(id % 30)));
      if (id % 3 == 0) rig.RunToEnd();
    }
    rig.RunToEnd();
    const StepOutput out = rig.Step();
    EXPECT_EQ(out.stats.in_use_slots(), 0u);
    verified += out.stats.hits_verified;
    not_verified += out.stats.hits_not_verified;
  }
  EXPECT_GT(verified, 100u);
  EXPECT_GT(not_verified, 0u);
}

TEST(HitCheck, ADamagedBlockStopsAllAnswers) {
  Rig rig({.prefill_chunk = 16, .verify_hits = 1});
  const std::vector<TokenId> prompt = Tokens(100, 1);
  rig.Arrive(Request(1, prompt, 5));
  rig.RunToEnd();
  rig.Arrive(Request(2, prompt, 1));  // ends in this step; the check of its hit takes more
  rig.Arrive(Request(3, Tokens(50, 3), 200));
  EXPECT_EQ(rig.finishes.at({RequestId(2), 0}).reason, FinishReason::kLength);
  rig.memory().arena()[3] ^= std::byte{1};  // in the prompt's first block
  for (int i = 0; i < 8; ++i) rig.Step();
  EXPECT_EQ(rig.finishes.at({RequestId(3), 0}).reason, FinishReason::kError);
  EXPECT_THAT(rig.finishes.at({RequestId(3), 0}).error.message(), testing::HasSubstr("no answer can be trusted"));
  EXPECT_TRUE(rig.engine().idle());
  const StepOutput out = rig.Arrive(Request(4, Tokens(5, 4), 5));
  ASSERT_EQ(out.rejections.size(), 1u);
  EXPECT_EQ(out.rejections.front().reason, RejectReason::kPoisoned);
  EXPECT_EQ(out.stats.in_use_slots(), 0u);
}

TEST(HitCheck, WithoutRoomTheHitIsNotVerifiedAndSaysSo) {
  Rig rig({.verify_hits = 1}, {}, 10);
  rig.Arrive(Request(1, Tokens(100, 1), 20));
  rig.RunToEnd();
  rig.Arrive(Request(2, Tokens(100, 1), 20));
  rig.RunToEnd();
  EXPECT_EQ(rig.Step().stats.hits_verified, 0u);
  EXPECT_EQ(rig.Step().stats.hits_not_verified, 1u);
  EXPECT_EQ((rig.outputs[{RequestId(2), 0}]), (rig.outputs[{RequestId(1), 0}]));
}

}  // namespace
}  // namespace cachalot::engine
