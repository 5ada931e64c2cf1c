// RunSoak sends random work to an engine over the fake model: prompts that often begin alike, forks, samplings,
// tenants, retention hints, cancels at any moment, clears and failed runs, in a pool that is always full. Whoever
// finishes must have got exactly the model's tokens.
// Threads:   one.
// Ownership: none.
// Invariant: equal runs do the same.
// Cost:      a fraction of a millisecond per step.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "engine/testing/engine_rig.h"

namespace cachalot::engine {

struct SoakRun {
  Device device = Device::kCpu;
  std::string admission = "guaranteed";
  std::string eviction = "cost";
  uint64_t seed = 0;
  int steps = 1500;
  bool prefix_cache = true;
};

struct SoakReport {
  uint64_t operations = 0;  // arrivals, cancels, clears, failed runs and steps
  uint64_t compared = 0;    // answers
  EngineStats stats;
};

class Soak {
 public:
  explicit Soak(const SoakRun& run) : run_(run), random_(run.seed), prompts_(random_(), 120) {
    exec::FakeOptions model;
    model.windows = run.seed % 2 == 0 ? std::vector<uint32_t>{0} : std::vector<uint32_t>{0, 24, 24, 40};
    model.limits = {.rows = 40, .logit_rows = 12};
    EngineOptions options{.max_queue = 50,
                          .max_sequences = 10,
                          .step_rows = 40,
                          .prefill_chunk = 1 + Below(40),
                          .prefix_cache = run.prefix_cache,
                          .eviction = run.eviction,
                          .admission = run.admission};
    options.pin_budget = 0.15;
    rig_ = std::make_unique<Rig>(options, model, 120, run.device);
  }

  SoakReport Go() {
    for (int step = 0; step < run_.steps && !testing::Test::HasFatalFailure(); ++step) Step(step);
    rig_->RunToEnd();
    rig_->Advance(Nanos(1'000'000'000));
    rig_->Step();
    report_.stats = rig_->Step().stats;
    EXPECT_EQ(report_.stats.in_use_slots(), 0u);
    EXPECT_EQ(report_.stats.promised_slots, 0u);
    for (const auto& [id, request] : requests_) {
      for (uint32_t c = 0; c < request.n; ++c) Compare(request, c);
    }
    return report_;
  }

 private:
  uint32_t Below(uint64_t n) { return static_cast<uint32_t>(random_.Below(n)); }

  void Step(int step) {
    StepInput input;
    while (Below(3) == 0) {
      GenerateRequest request = AnyRequest();
      requests_.emplace(request.id, request);
      input.arrivals.push_back(std::move(request));
    }
    if (!requests_.empty() && Below(6) == 0) input.cancels.push_back(RequestId(1 + Below(last_id_)));
    if (Below(100) == 0) rig_->executor().FailRun(1, Internal("injected"));
    const bool clear = Below(200) == 0;
    const bool look = !clear && step % 8 == 0;
    const InquiryId id(static_cast<uint64_t>(step));
    if (clear) input.inquiries.push_back({id, InquiryKind::kClear, {}});
    if (look) input.inquiries.push_back({id, InquiryKind::kOverview, {}});
    report_.operations += 1 + input.arrivals.size() + input.cancels.size() + (clear ? 1 : 0);
    const StepOutput out = rig_->Step(std::move(input));
    if (look) {
      const KvLedger& ledger = out.answers.front().overview.ledger;
      EXPECT_EQ(ledger.Sum(), ledger.total_bytes);
    }
    const auto& hits = out.stats.hits;
    EXPECT_EQ(hits[TokenClass::kShared] + hits[TokenClass::kOwn], out.stats.prompt_tokens_cached);
    EXPECT_LE(out.stats.running_sequences, 10u);
    EXPECT_LE(out.stats.pinned_slots, 18u);
    for (const Rejection& r : out.rejections) requests_.erase(r.id);
  }

  GenerateRequest AnyRequest() {
    GenerateRequest request = Request(++last_id_, prompts_.Next(), Below(40));
    request.n = 1 + Below(3);
    request.sampling.temperature = Below(2) == 0 ? 0.0f : 1.0f;
    request.sampling.seed = random_();
    if (Below(4) == 0) request.prompt_logprobs = 1;
    if (Below(2) == 0) request.end_tokens = {Below(1000)};
    request.scope.salt.low = Below(2);
    request.tenant = TenantId(Below(3));
    RetentionHints& hints = request.retention;
    hints.priority = static_cast<RetentionPriority>(Below(3));
    if (Below(3) == 0) hints.ttl = Nanos(1000 * (1 + Below(200)));
    if (Below(4) == 0) hints.pin = Nanos(1000 * (1 + Below(100)));
    hints.scrub = Below(4) == 0;
    return request;
  }

  void Compare(const GenerateRequest& request, uint32_t choice) {
    ASSERT_TRUE(rig_->finishes.contains({request.id, choice}));
    const std::vector<TokenId> expected = Expected(rig_->executor(), request, choice);
    const std::vector<TokenId>& got = rig_->outputs[{request.id, choice}];
    const FinishReason reason = rig_->finishes.at({request.id, choice}).reason;
    if (reason == FinishReason::kStop || reason == FinishReason::kLength) {
      EXPECT_EQ(got, expected) << request.id.value << "." << choice;
      ++report_.compared;
    } else {
      ASSERT_LE(got.size(), expected.size());
      EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.begin())) << request.id.value << "." << choice;
    }
  }

  const SoakRun run_;
  SplitMix64 random_;
  PromptMaker prompts_;
  std::unique_ptr<Rig> rig_;
  std::map<RequestId, GenerateRequest> requests_;
  uint64_t last_id_ = 0;
  SoakReport report_;
};

inline SoakReport RunSoak(const SoakRun& run) { return Soak(run).Go(); }

}  // namespace cachalot::engine
