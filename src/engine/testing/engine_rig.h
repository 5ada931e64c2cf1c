// Rig is an engine over the fake model, and what its clients were told. After every step the KV accounting is checked,
// and the fake model has checked that each row saw the KV of its own tokens.
// Threads:   one.
// Ownership: owns all parts.
// Invariant: equal inputs give equal outputs.
// Cost:      that of a snapshot per step.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "engine/engine.h"
#include "engine/input_log.h"
#include "exec/device_memory.h"
#include "exec/sampler.h"
#include "exec/testing/fake_executor.h"
#include "exec/testing/faulty_memory.h"
#include "kv/eviction.h"
#include "kv/kv_snapshot.h"
#include "tier/durable_sessions.h"
#include "tier/host_tier.h"
#include "tier/kv_store.h"
#include "tier/session_archive.h"

namespace cachalot::engine {

enum class Device { kCpu, kSimLink };

class Rig {
 public:
  explicit Rig(EngineOptions options = {}, exec::FakeOptions model = {}, uint32_t slots = 256,
               Device device = Device::kCpu, std::unique_ptr<kv::EvictionPolicy> policy = nullptr,
               ModelFacts facts = {}, ManualClock* clock = nullptr,
               const exec::LinkSpec& link = {.bytes_per_second = 1e6})
      : clock_(clock == nullptr ? own_clock_ : *clock) {
    const uint64_t slot_bytes = exec::FakeExecutor::LayoutFor(model).slot_bytes;
    auto memory = device == Device::kCpu ? exec::MakeCpuMemory(slot_bytes, slots)
                                         : exec::MakeSimLinkMemory(slot_bytes, slots, link, clock_);
    memory_ = std::make_unique<exec::FaultyMemory>(std::move(memory).value());
    executor_ = std::make_unique<exec::FakeExecutor>(model, *memory_, &clock_);
    if (options.input_log != nullptr) Log(options, &facts);
    exec::DeviceMemory& seen = logged_memory_ == nullptr ? *memory_ : *logged_memory_;
    engine_ = policy == nullptr
                  ? std::make_unique<Engine>(options, *executor_, seen, sampler_, facts)
                  : std::make_unique<Engine>(options, *executor_, seen, sampler_, facts, std::move(policy));
  }

  StepOutput Step(StepInput input = {}) {
    static_cast<void>(engine_->awaits_transfers());  // as the loop asks between steps
    static_cast<void>(engine_->next_due());
    clock_.Advance(Nanos(1000));
    input.now = clock_.Now();
    input.unix_seconds = static_cast<uint64_t>(clock_.UnixSeconds());
    StepOutput out = engine_->Step(std::move(input));
    for (const TokenEvent& e : out.tokens) outputs[{e.id, e.choice}].push_back(e.token.token);
    for (const FinishEvent& e : out.finishes) {
      EXPECT_FALSE(finishes.contains({e.id, e.choice})) << "two endings of one choice";
      finishes.emplace(std::pair(e.id, e.choice), e);
    }
    for (const SessionAnswer& e : out.session_answers) {
      EXPECT_FALSE(session_answers.contains(e.id)) << "two answers to one command";
      session_answers.emplace(e.id, e);
    }
    const kv::KvSnapshot snapshot = engine_->Snapshot();
    const std::vector<std::string> problems = kv::Violations(snapshot);
    EXPECT_TRUE(problems.empty()) << problems.front();
    EXPECT_EQ(out.stats.ledger.Sum(), out.stats.ledger.total_bytes);
    EXPECT_TRUE(executor_->violations().empty()) << executor_->violations().front();
    return out;
  }
  StepOutput Arrive(GenerateRequest request) {
    StepInput input;
    input.arrivals.push_back(std::move(request));
    return Step(std::move(input));
  }
  StepOutput Cancel(RequestId id) {
    StepInput input;
    input.cancels.push_back(id);
    return Step(std::move(input));
  }
  // Begins it; Step until it is answered.
  StepOutput Command(SessionCommand command) {
    StepInput input;
    input.session_commands.push_back(std::move(command));
    return Step(std::move(input));
  }
  void Advance(Nanos time) { clock_.Advance(time); }
  void RunToEnd() {
    while (!engine_->idle()) Step();
  }
  // As when the server is drained.
  void WriteAll() {
    while (engine_->writes_pending()) Step();
  }

  Engine& engine() { return *engine_; }
  exec::FakeExecutor& executor() { return *executor_; }
  exec::FaultyMemory& memory() { return *memory_; }

  std::map<std::pair<RequestId, uint32_t>, std::vector<TokenId>> outputs;
  std::map<std::pair<RequestId, uint32_t>, FinishEvent> finishes;
  std::map<SessionCommandId, SessionAnswer> session_answers;

 private:
  // The engine is to see what the log hears.
  void Log(const EngineOptions& options, ModelFacts* facts) {
    InputLog& log = *options.input_log;
    InputFacts logged = FactsOf(options, *facts, *executor_, *memory_);
    if (facts->host != nullptr) {
      logged.host = HostFacts{facts->host->ledger().limit_bytes, std::string(tier::CellEvictionNames().front())};
    }
    log.Begin(logged);
    logged_memory_ = MakeLoggedMemory(*memory_, log);
    if (facts->store != nullptr) {
      logged_store_ = MakeLoggedStore(*facts->store, log);
      facts->store = logged_store_.get();
    }
    if (facts->session_store != nullptr) {
      logged_sessions_ = MakeLoggedSessions(*facts->session_store, log);
      facts->session_store = logged_sessions_.get();
    }
    if (facts->archive != nullptr) {
      logged_archive_ = MakeLoggedArchive(*facts->archive, log);
      facts->archive = logged_archive_.get();
    }
  }

  ManualClock own_clock_;
  ManualClock& clock_;
  std::unique_ptr<exec::FaultyMemory> memory_;
  std::unique_ptr<exec::DeviceMemory> logged_memory_;  // these only with an input log
  std::unique_ptr<tier::KvStore> logged_store_;
  std::unique_ptr<tier::DurableSessions> logged_sessions_;
  std::unique_ptr<tier::SessionArchive> logged_archive_;
  std::unique_ptr<exec::FakeExecutor> executor_;
  exec::Sampler sampler_ = exec::FakeSampler();
  std::unique_ptr<Engine> engine_;
};

inline GenerateRequest Request(uint64_t id, std::vector<TokenId> prompt, uint32_t max_tokens) {
  GenerateRequest request;
  request.id = RequestId(id);
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  return request;
}

inline std::vector<TokenId> Tokens(uint32_t count, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& t : tokens) t = static_cast<TokenId>(random.Below(1000));
  return tokens;
}

// What the request's choice must answer: one token after the other, alone, straight from the model.
inline std::vector<TokenId> Expected(const exec::FakeExecutor& model, const GenerateRequest& request, uint32_t choice) {
  exec::Sampler sampler = exec::FakeSampler();
  std::vector<TokenId> all = request.prompt, output;
  while (output.size() < request.max_tokens) {
    const std::vector<float> logits = model.ExpectedLogits(all);
    output.push_back(sampler.Sample(request.sampling, {logits, request.prompt, output, choice, all.size()}).token);
    all.push_back(output.back());
    if (std::ranges::binary_search(request.end_tokens, output.back())) break;
  }
  return output;
}

// Prompts that often begin as earlier ones did, and end anywhere.
class PromptMaker {
 public:
  static constexpr TokenId kTokens = 900;  // all that it makes are smaller

  PromptMaker(uint64_t seed, uint32_t longest) : random_(seed), longest_(longest) {}

  std::vector<TokenId> Next() {
    std::vector<TokenId> prompt;
    if (!made_.empty() && random_.Below(4) > 0) {
      const std::vector<TokenId>& from = made_[random_.Below(made_.size())];
      prompt.assign(from.begin(), from.begin() + static_cast<ptrdiff_t>(random_.Below(from.size() + 1)));
    }
    const uint64_t more = random_.Below(3) == 0 ? 0 : random_.Below(longest_ / 2);
    for (uint64_t i = 0; (i < more || prompt.empty()) && prompt.size() < longest_; ++i) {
      prompt.push_back(static_cast<TokenId>(random_.Below(kTokens)));
    }
    Keep(prompt);
    return prompt;
  }
  // Later prompts may begin so.
  void Keep(std::vector<TokenId> tokens) {
    if (made_.size() < 40) {
      made_.push_back(std::move(tokens));
    } else {
      made_[random_.Below(made_.size())] = std::move(tokens);
    }
  }

 private:
  SplitMix64 random_;
  const uint32_t longest_;
  std::vector<std::vector<TokenId>> made_;
};

}  // namespace cachalot::engine
