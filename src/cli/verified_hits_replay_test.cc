// Replay of engines that compute hits again and compare: what the KV was to them then it is to them again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "cli/testing/replayed_log.h"
#include "engine/testing/engine_logs.h"
#include "engine/testing/engine_rig.h"

namespace cachalot::cli {
namespace {

using engine::Request;
using engine::Tokens;

class VerifiedHits : public testing::TestWithParam<engine::Device> {
 protected:
  VerifiedHits() {
    SetLogLevel(LogLevel::kOff);
    options_ = {.max_sequences = 10, .prefill_chunk = 13, .verify_hits = 1};
    logs_.Attach(&options_);
  }

  // What the server counted, after a replay that made its decisions.
  engine::EngineStats Replayed(engine::Rig& rig) {
    rig.RunToEnd();
    const engine::EngineStats served = rig.Step().stats;
    logs_.End();
    const ReplayedLog again = ReplayLog(logs_.inputs());
    EXPECT_TRUE(again.decisions == logs_.decisions());
    EXPECT_EQ(again.report.other_tokens, 0u);
    EXPECT_EQ(again.report.last.hits_verified, served.hits_verified);
    EXPECT_EQ(again.report.last.hits_not_verified, served.hits_not_verified);
    return served;
  }

  engine::EngineLogs logs_;
  engine::EngineOptions options_;
};

TEST_P(VerifiedHits, SoundOnesAreVerifiedAgain) {
  engine::Rig rig(options_, {.windows = {0, 24, 24}}, 400, GetParam());
  engine::PromptMaker prompts(1, 120);
  for (uint64_t id = 1; id <= 60; ++id) {
    rig.Arrive(Request(id, prompts.Next(), 5));
    if (id % 3 == 0) rig.RunToEnd();
  }
  const engine::EngineStats served = Replayed(rig);
  EXPECT_GT(served.hits_verified, 5u);
  EXPECT_EQ(served.requests_finished, 60u);
}

TEST_P(VerifiedHits, ThoseThatCouldNotBeReadAreNotVerifiedAgain) {
  engine::Rig rig(options_, {.windows = {0, 24, 24}}, 400, GetParam());
  engine::PromptMaker prompts(2, 120);
  for (uint64_t id = 1; id <= 150; ++id) {
    if (id % 5 == 0) rig.memory().FailCopyOut(1 + id % 4);
    rig.Arrive(Request(id, prompts.Next(), 5));
    if (id % 3 == 0) rig.RunToEnd();
  }
  const engine::EngineStats served = Replayed(rig);
  EXPECT_GT(rig.memory().failed(), 5u);
  EXPECT_GT(served.hits_verified, 0u);
  EXPECT_GE(served.hits_not_verified, rig.memory().failed());
}

TEST_P(VerifiedHits, OneThatDiffersEndsAllAnswersAgain) {
  engine::Rig rig(options_, {}, 256, GetParam());
  const std::vector<TokenId> prompt = Tokens(100, 1);
  rig.Arrive(Request(1, prompt, 5));
  rig.RunToEnd();
  rig.Arrive(Request(2, prompt, 1));
  rig.Arrive(Request(3, Tokens(50, 3), 200));
  rig.memory().arena()[3] ^= std::byte{1};  // in the prompt's first block
  for (int i = 0; i < 12; ++i) rig.Step();
  EXPECT_EQ(rig.finishes.at({RequestId(3), 0}).reason, engine::FinishReason::kError);
  rig.Arrive(Request(4, Tokens(5, 4), 5));
  Replayed(rig);
  EXPECT_THAT(logs_.decisions(), testing::HasSubstr("finish 3.0 error"));
  EXPECT_THAT(logs_.decisions(), testing::HasSubstr("refuse 4 poisoned"));
}

INSTANTIATE_TEST_SUITE_P(All, VerifiedHits, testing::Values(engine::Device::kCpu, engine::Device::kSimLink),
                         [](const auto& info) { return info.param == engine::Device::kCpu ? "Cpu" : "SimLink"; });

}  // namespace
}  // namespace cachalot::cli
