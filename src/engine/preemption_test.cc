// Requests that give way and come back.
#include <gtest/gtest.h>

#include "engine/testing/engine_rig.h"

namespace cachalot::engine {
namespace {

TEST(Preemption, WhoGivesWayAnswersAsIfItHadNot) {
  // Ends come early, so that many are expected to fit; then all generate to their limit.
  Rig rig({.admission = "expected"}, {}, 40);
  for (uint64_t id = 1; id <= 20; ++id) rig.Arrive(Request(id, Tokens(20, id), 4));
  rig.RunToEnd();
  StepInput input;
  for (uint64_t id = 21; id <= 32; ++id) input.arrivals.push_back(Request(id, Tokens(20, id), 150));
  rig.Step(std::move(input));
  rig.RunToEnd();
  for (uint64_t id = 21; id <= 32; ++id) {
    EXPECT_EQ((rig.outputs[{RequestId(id), 0}]), Expected(rig.executor(), Request(id, Tokens(20, id), 150), 0)) << id;
  }
  const EngineStats stats = rig.Step().stats;
  EXPECT_GT(stats.preemptions, 5u);
  EXPECT_EQ(stats.step_failures, 0u);
}

TEST(Preemption, TheOldestIsNeverAVictim) {
  Rig rig({.admission = "expected"}, {}, 20);
  for (uint64_t id = 1; id <= 20; ++id) rig.Arrive(Request(id, Tokens(10, id), 2));
  rig.RunToEnd();
  rig.Arrive(Request(100, Tokens(20, 100), 250));
  for (uint64_t id = 101; id <= 106; ++id) rig.Arrive(Request(id, Tokens(20, id), 250));
  uint64_t last = 0;
  while (!rig.finishes.contains({RequestId(100), 0})) {
    rig.Step();
    const uint64_t now = rig.outputs[{RequestId(100), 0}].size();
    EXPECT_EQ(now, last == 0 ? now : last + 1);  // a token in every step
    last = now;
  }
  rig.RunToEnd();
  EXPECT_GT(rig.Step().stats.preemptions, 0u);
}

TEST(Preemption, AllChoicesOfARequestComeBack) {
  Rig rig({.admission = "expected"}, {}, 60);
  for (uint64_t id = 1; id <= 20; ++id) rig.Arrive(Request(id, Tokens(10, id), 2));
  rig.RunToEnd();
  std::vector<GenerateRequest> requests;
  StepInput input;
  for (uint64_t id = 21; id <= 28; ++id) {
    GenerateRequest request = Request(id, Tokens(50, id), 100);
    request.n = 3;
    request.sampling.temperature = 1;
    request.sampling.seed = id;
    requests.push_back(request);
    input.arrivals.push_back(std::move(request));
  }
  rig.Step(std::move(input));
  rig.RunToEnd();
  EXPECT_GT(rig.Step().stats.preemptions, 0u);
  for (const GenerateRequest& request : requests) {
    for (uint32_t c = 0; c < 3; ++c) {
      EXPECT_EQ((rig.outputs[{request.id, c}]), Expected(rig.executor(), request, c))
          << request.id.value << "." << c << " " << rig.finishes.at({request.id, c}).error.message();
    }
  }
}

TEST(Preemption, AScoredPromptIsToldOnce) {
  Rig rig({.prefill_chunk = 4, .admission = "expected"}, {.limits = {.rows = 32, .logit_rows = 12}}, 20);
  for (uint64_t id = 1; id <= 20; ++id) rig.Arrive(Request(id, Tokens(10, id), 2));
  rig.RunToEnd();
  std::map<uint64_t, uint32_t> told;
  StepInput input;
  for (uint64_t id = 21; id <= 26; ++id) {
    input.arrivals.push_back(Request(id, Tokens(60, id), 150));
    input.arrivals.back().prompt_logprobs = 0;
  }
  StepOutput out = rig.Step(std::move(input));
  for (;; out = rig.Step()) {
    for (const PromptEvent& event : out.prompts) {
      EXPECT_EQ(event.first, told[event.id.value] + 1);
      told[event.id.value] += static_cast<uint32_t>(event.tokens.size());
    }
    if (rig.engine().idle()) break;
  }
  for (uint64_t id = 21; id <= 26; ++id) EXPECT_EQ(told[id], 59u);
  EXPECT_GT(rig.Step().stats.preemptions, 0u);
}

}  // namespace
}  // namespace cachalot::engine
