// FakeGenerator stands in for an engine: it answers every request with a text that the test chose, one token per choice
// and step, and records what it was asked.
// Threads:   any; steps run on its own thread, or on the test's that calls Step.
// Ownership: owns its thread.
// Invariant: as Generator. Stop strings, end tokens and max_tokens end a choice as an engine ends it.
// Cost:      irrelevant.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "server/generator.h"

namespace cachalot::server {

class FakeGenerator final : public Generator {
 public:
  struct Options {
    // The tokens of a choice; after them comes an end token, FakeTokenizer::kEos.
    std::function<std::vector<TokenId>(const engine::GenerateRequest&, uint32_t choice)> answer;
    bool automatic = true;  // steps follow each other while anything runs; else the test calls Step
    // Not kOk: the request ends with this error after its first token.
    Status error;
    std::optional<engine::SessionReport> session;  // what requests that name one are told of it
  };
  // Answers with this text.
  static Options Saying(std::string text);
  // Repeats this text up to max_tokens.
  static Options Repeating(std::string text);

  explicit FakeGenerator(Options options);
  ~FakeGenerator() override;

  void Start(Sink sink) override;
  void Submit(engine::GenerateRequest request) override;
  void Cancel(RequestId id) override;
  void Ask(engine::Inquiry inquiry) override;
  void Command(engine::SessionCommand command) override;
  void Drain() override;
  void Stop() override;

  // The next requests are refused so.
  void RejectWith(engine::Rejection rejection) CACHALOT_EXCLUDES(mutex_);
  // One step; false when there was nothing to do.
  bool Step() CACHALOT_EXCLUDES(mutex_);
  // Hands this to the sink as a step of its own.
  void Emit(engine::StepOutput output) CACHALOT_EXCLUDES(mutex_);

  // Block until there were that many, and tell all.
  std::vector<engine::GenerateRequest> WaitForSubmits(size_t count) CACHALOT_EXCLUDES(mutex_);
  std::vector<RequestId> WaitForCancels(size_t count) CACHALOT_EXCLUDES(mutex_);
  std::vector<engine::Inquiry> WaitForInquiries(size_t count) CACHALOT_EXCLUDES(mutex_);
  std::vector<engine::SessionCommand> WaitForCommands(size_t count) CACHALOT_EXCLUDES(mutex_);
  size_t running() CACHALOT_EXCLUDES(mutex_);
  size_t cancels() CACHALOT_EXCLUDES(mutex_);

 private:
  struct Choice {
    std::vector<TokenId> answer;
    std::unique_ptr<StopCondition> stop;
    uint32_t made = 0;
    bool open = true;
  };
  struct Running {
    engine::GenerateRequest request;
    std::vector<Choice> choices;
    bool prompt_told = false;
  };

  void Admit(const engine::GenerateRequest& request, engine::StepOutput* out) CACHALOT_REQUIRES(mutex_);
  void Advance(Running& running, engine::StepOutput* out) CACHALOT_REQUIRES(mutex_);
  void AdvanceChoice(Running& running, uint32_t index, engine::StepOutput* out) CACHALOT_REQUIRES(mutex_);

  const Options options_;
  Mutex mutex_;
  CondVar changed_;
  Sink sink_ CACHALOT_GUARDED_BY(mutex_);
  std::vector<engine::GenerateRequest> submits_ CACHALOT_GUARDED_BY(mutex_);
  std::vector<engine::GenerateRequest> arrivals_ CACHALOT_GUARDED_BY(mutex_);
  std::vector<RequestId> cancels_ CACHALOT_GUARDED_BY(mutex_);
  std::vector<engine::Inquiry> inquiries_ CACHALOT_GUARDED_BY(mutex_);
  std::vector<engine::Inquiry> asked_ CACHALOT_GUARDED_BY(mutex_);
  std::vector<engine::SessionCommand> commands_ CACHALOT_GUARDED_BY(mutex_);
  std::vector<Running> running_ CACHALOT_GUARDED_BY(mutex_);
  engine::EngineStats stats_ CACHALOT_GUARDED_BY(mutex_);
  bool rejecting_ CACHALOT_GUARDED_BY(mutex_) = false;
  engine::Rejection rejection_ CACHALOT_GUARDED_BY(mutex_);
  bool draining_ CACHALOT_GUARDED_BY(mutex_) = false;
  bool stopping_ CACHALOT_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace cachalot::server
