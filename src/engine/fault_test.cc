// One allocation fails, or one run: whichever it is, whoever was in that step is told, and all others answer as if
// alone.
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "engine/testing/engine_rig.h"
#include "kv/testing/refusing_policy.h"

namespace cachalot::engine {
namespace {

// Conversations of two turns, forks and unrelated prompts, many times the pool together.
std::vector<GenerateRequest> Scenario() {
  std::vector<GenerateRequest> requests;
  const std::vector<TokenId> shared = Tokens(50, 7);
  for (uint64_t id = 1; id <= 14; ++id) {
    std::vector<TokenId> prompt = id % 2 == 0 ? shared : Tokens(30, id);
    const std::vector<TokenId> own = Tokens(static_cast<uint32_t>(5 + 3 * (id % 5)), 100 + id % 6);
    prompt.insert(prompt.end(), own.begin(), own.end());
    requests.push_back(Request(id, prompt, static_cast<uint32_t>(4 + id % 9)));
    requests.back().n = id % 5 == 0 ? 3 : 1;
    requests.back().retention.scrub = id % 4 == 0;
  }
  return requests;
}

struct Outcome {
  uint32_t failed = 0;
  uint32_t rejected = 0;
  uint32_t answered = 0;
};

// Three arrive with each step. After every step the rig looks for violations.
Outcome Play(Rig& rig, const std::vector<GenerateRequest>& requests) {
  Outcome outcome;
  for (size_t i = 0; i < requests.size() || !rig.engine().idle();) {
    StepInput input;
    for (int arrivals = 0; arrivals < 3 && i < requests.size(); ++arrivals) input.arrivals.push_back(requests[i++]);
    for (const Rejection& rejection : rig.Step(std::move(input)).rejections) {
      EXPECT_EQ(rejection.reason, RejectReason::kTooLarge);
      EXPECT_GT(rejection.needed, rejection.available);
      EXPECT_NE(rejection.message, "");
      ++outcome.rejected;
    }
  }
  for (const GenerateRequest& request : requests) {
    for (uint32_t c = 0; c < request.n; ++c) {
      const auto end = rig.finishes.find({request.id, c});
      if (end == rig.finishes.end()) continue;
      if (end->second.reason == FinishReason::kError) {
        EXPECT_NE(end->second.error.message(), "");
        ++outcome.failed;
      } else {
        EXPECT_EQ((rig.outputs[{request.id, c}]), Expected(rig.executor(), request, c)) << request.id.value;
        ++outcome.answered;
      }
    }
  }
  EXPECT_EQ(rig.Step().stats.in_use_slots(), 0u);
  EXPECT_EQ(rig.Step().stats.promised_slots, 0u);
  return outcome;
}

constexpr uint32_t kChoices = 14 + 2 * 2;
constexpr uint32_t kSlots = 18;

class Faults : public testing::TestWithParam<std::tuple<const char*, std::vector<uint32_t>>> {
 protected:
  EngineOptions Options() const {
    EngineOptions options{.max_sequences = 6, .prefill_chunk = 24};
    options.admission = std::get<0>(GetParam());
    return options;
  }
  exec::FakeOptions Model() const { return {.windows = std::get<1>(GetParam())}; }
  uint32_t Slots() const {
    return kSlots * static_cast<uint32_t>(exec::FakeExecutor::LayoutFor(Model()).groups.size());
  }
};

INSTANTIATE_TEST_SUITE_P(Engines, Faults,
                         testing::Combine(testing::Values("guaranteed", "expected"),
                                          testing::Values(std::vector<uint32_t>{0}, std::vector<uint32_t>{0, 24, 24})));

TEST_P(Faults, TheKthVictimThatIsRefusedFailsItsStepOnly) {
  uint64_t calls = 0, failures = 0;
  for (uint64_t k = 1; k == 1 || calls >= k - 1; ++k) {
    calls = 0;
    Rig rig(Options(), Model(), Slots(), Device::kCpu,
            std::make_unique<kv::RefusingPolicy>(kv::MakeEvictionPolicy("lru").value(), k, &calls));
    const Outcome outcome = Play(rig, Scenario());
    ASSERT_FALSE(HasFailure()) << "victim " << k;
    EXPECT_EQ(outcome.failed + outcome.answered, kChoices) << k;
    failures += outcome.failed > 0;
  }
  EXPECT_GT(calls, 20u);
  EXPECT_GT(failures, 10u);
}

TEST_P(Faults, TheKthRunThatFailsEndsItsRequestsOnly) {
  uint64_t runs = 0;
  for (uint64_t k = 1; k == 1 || runs >= k - 1; ++k) {
    Rig rig(Options(), Model(), Slots());
    rig.executor().FailRun(k, Internal("device lost"));
    const Outcome outcome = Play(rig, Scenario());
    ASSERT_FALSE(HasFailure()) << "run " << k;
    runs = rig.executor().runs();
    EXPECT_EQ(outcome.failed + outcome.answered, kChoices) << k;
    EXPECT_EQ(outcome.failed > 0, k <= runs) << k;
  }
  EXPECT_GT(runs, 20u);
}

TEST_P(Faults, APoolOfKSlotsRefusesOrAnswers) {
  uint32_t all_answered = 0;
  for (uint32_t k = 1; k <= 2 * Slots(); ++k) {
    Rig rig(Options(), Model(), k);
    const Outcome outcome = Play(rig, Scenario());
    ASSERT_FALSE(HasFailure()) << k << " slots";
    EXPECT_EQ(outcome.failed, 0u) << k;
    all_answered += outcome.answered == kChoices;
    if (outcome.answered == kChoices) {
      EXPECT_EQ(outcome.rejected, 0u);
    }
  }
  EXPECT_GT(all_answered, Slots());
}

}  // namespace
}  // namespace cachalot::engine
