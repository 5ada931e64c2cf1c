#include "sim/input_replay.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "exec/device_memory.h"
#include "exec/sim/sim_executor.h"
#include "sim/address_range.h"
#include "sim/replayed_archive.h"
#include "sim/replayed_sessions.h"
#include "sim/replayed_store.h"
#include "tier/archive_file.h"
#include "tier/host_tier.h"

namespace cachalot::sim {
namespace {

// What was sampled for each choice, by request and choice.
class Answers {
 public:
  explicit Answers(const std::vector<engine::LoggedStep>& steps) {
    for (const engine::LoggedStep& step : steps) {
      for (const engine::LoggedToken& token : step.tokens) {
        by_choice_[{token.request.value, token.choice}].push_back({token.token, token.stops});
        ++tokens_;
      }
    }
  }

  struct Token {
    TokenId token = 0;
    bool stops = false;
  };
  // Past the end of what was logged: token 0, which stops nothing.
  Token At(uint64_t request, uint32_t choice, uint64_t index) {
    const auto found = by_choice_.find({request, choice});
    if (found != by_choice_.end() && index < found->second.size()) return found->second[index];
    ++unknown_;
    return {};
  }
  uint64_t tokens() const { return tokens_; }
  uint64_t unknown() const { return unknown_; }

 private:
  std::map<std::pair<uint64_t, uint32_t>, std::vector<Token>> by_choice_;
  uint64_t tokens_ = 0;
  uint64_t unknown_ = 0;
};

// The request is told by its seed, which nothing else looks at.
class LoggedSampler final : public exec::Sampler {
 public:
  explicit LoggedSampler(Answers& answers) : Sampler(exec::SimSampler()), answers_(answers) {}
  SampledToken Sample(const SamplingParams& params, const exec::SampleInput& input) override {
    return {.token = answers_.At(params.seed, input.choice, input.output.size()).token, .logprob = 0, .top = {}};
  }
  SampledToken Score(std::span<const float>, TokenId token, uint32_t) override {
    return {.token = token, .logprob = 0, .top = {}};
  }

 private:
  Answers& answers_;
};

class LoggedStop final : public StopCondition {
 public:
  LoggedStop(Answers& answers, uint64_t request, uint32_t choice)
      : answers_(answers), request_(request), choice_(choice) {}
  bool Push(TokenId) override { return answers_.At(request_, choice_, pushed_++).stops; }

 private:
  Answers& answers_;
  const uint64_t request_;
  const uint32_t choice_;
  uint64_t pushed_ = 0;
};

// A pool that holds nothing, whose copies end when the log says.
class LoggedMemory final : public exec::DeviceMemory {
 public:
  explicit LoggedMemory(const engine::InputFacts& facts) : facts_(facts) {}
  // Of the next step.
  void SetAnswers(std::vector<engine::CopyAnswer> answers) {
    answers_ = std::move(answers);
    asked_ = 0;
  }

  const char* name() const override { return "logged"; }
  std::byte* arena() override { return nullptr; }
  uint64_t slot_bytes() const override { return facts_.layout.slot_bytes; }
  uint32_t slots() const override { return facts_.slots; }
  exec::CopyTicket CopyWithin(std::span<const BlockCopy>) override { return exec::CopyTicket(++last_); }
  exec::CopyTicket CopyOut(SlotId, std::span<std::byte>) override { return exec::CopyTicket(++last_); }
  exec::CopyTicket CopyIn(std::span<const exec::SlotFill>) override { return exec::CopyTicket(++last_); }
  bool Done(exec::CopyTicket ticket) override {
    if (Next() != engine::CopyAnswer::kUnderWay) done_ = std::max(done_, ticket);
    return ticket <= done_;
  }
  Status Wait(exec::CopyTicket ticket) override {
    done_ = std::max(done_, ticket);
    return Next() == engine::CopyAnswer::kFailed ? Unavailable("the copy failed") : OkStatus();
  }
  Result<bool> Same(SlotId, SlotId, uint64_t) override {
    const engine::CopyAnswer answer = Next();
    if (answer == engine::CopyAnswer::kFailed) return Unavailable("the slots could not be read");
    return answer != engine::CopyAnswer::kDiffers;
  }
  std::optional<Nanos> NextDone() const override { return std::nullopt; }
  bool asynchronous() const override { return facts_.asynchronous_copies; }

 private:
  // Past the end of what was logged, as where copies take no time: it is done, and well.
  engine::CopyAnswer Next() { return asked_ < answers_.size() ? answers_[asked_++] : engine::CopyAnswer::kDone; }

  const engine::InputFacts& facts_;
  std::vector<engine::CopyAnswer> answers_;
  size_t asked_ = 0;
  uint64_t last_ = 0;
  exec::CopyTicket done_{0};  // the last one that is known to be
};

// Computes nothing; its logits are empty, and nobody looks at them.
class LoggedExecutor final : public exec::Executor {
 public:
  explicit LoggedExecutor(const engine::InputFacts& facts) : facts_(facts) {}
  void FailNext(bool fail) { fails_ = fail; }

  const KvLayout& layout() const override { return facts_.layout; }
  uint32_t vocabulary() const override { return facts_.vocabulary; }
  uint64_t context_tokens() const override { return facts_.context_tokens; }
  exec::StepLimits limits() const override { return {facts_.most_rows, facts_.most_logit_rows}; }
  Result<exec::Logits> Run(const exec::Batch& batch) override {
    if (fails_) return Internal("the run failed");
    for (uint32_t layer = 0; layer < facts_.layout.shape.layers.size(); ++layer) {
      for (const exec::SequenceRows& rows : batch.sequences) {
        if (rows.gate != nullptr) rows.gate->Await(layer);
      }
    }
    exec::Logits logits{.values = &nothing_, .rows = 0, .vocabulary = 0};
    for (const exec::SequenceRows& rows : batch.sequences) logits.rows += rows.logit_rows;
    return logits;
  }

 private:
  const engine::InputFacts& facts_;
  const float nothing_ = 0;
  bool fails_ = false;
};

class Replay {
 public:
  Replay(engine::LoggedInputs log, engine::DecisionLog::Sink decisions)
      : log_(std::move(log)),
        answers_(log_.steps),
        sampler_(answers_),
        executor_(log_.facts),
        memory_(log_.facts),
        decisions_(std::move(decisions)) {
    log_.facts.options.decision_log = &decisions_;
  }

  Status MakeTiers() {
    if (log_.facts.store) store_.emplace(log_.facts.layout.groups.size());
    if (log_.facts.sessions) {
      sessions_.emplace(log_.steps.empty() ? std::vector<tier::StoredSession>()
                                           : std::move(log_.steps.front().found_sessions));
    }
    if (log_.facts.archive) archive_.emplace(log_.facts.layout);
    if (!log_.facts.host) return OkStatus();
    CACHALOT_ASSIGN_OR_RETURN(host_memory_, AddressRange::Reserve(log_.facts.host->memory_bytes));
    CACHALOT_ASSIGN_OR_RETURN(
        host_,
        tier::HostTier::Make(host_memory_.bytes(), {.slot_bytes = log_.facts.layout.slot_bytes,
                                                    .groups = static_cast<uint32_t>(log_.facts.layout.groups.size()),
                                                    .eviction = log_.facts.host->eviction}));
    return OkStatus();
  }

  InputReplayReport Run() {
    const engine::ModelFacts facts{.identity = log_.facts.identity,
                                   .step_curve = log_.facts.step_curve,
                                   .host_rate = log_.facts.host_rate,
                                   .store = store_ ? &*store_ : nullptr,
                                   .host = host_.get(),
                                   .session_store = sessions_ ? &*sessions_ : nullptr,
                                   .archive = archive_ ? &*archive_ : nullptr};
    engine::Engine engine(log_.facts.options, executor_, memory_, sampler_, facts);
    InputReplayReport report{.tokens = answers_.tokens(), .last = {}};
    for (engine::LoggedStep& step : log_.steps) {
      if (step.drains) engine.Drain();
      executor_.FailNext(step.run_failed);
      memory_.SetAnswers(std::move(step.copies));
      if (store_) store_->Begin(std::move(step.store).value_or(engine::StoreAnswers{}));
      if (sessions_) sessions_->Begin(std::move(step.syncs));
      if (archive_) archive_->Begin(std::move(step.archive).value_or(engine::ArchiveAnswers{}));
      for (engine::GenerateRequest& request : step.input.arrivals) AnswerFromLog(request);
      report.last = engine.Step(std::move(step.input)).stats;
      ++report.steps;
    }
    report.other_tokens = answers_.unknown();
    return report;
  }

 private:
  void AnswerFromLog(engine::GenerateRequest& request) {
    const uint64_t id = request.id.value;
    request.sampling.seed = id;
    if (!request.stop) return;
    request.stop = [this, id, next = uint32_t{0}]() mutable {
      return std::make_unique<LoggedStop>(answers_, id, next++);
    };
  }

  engine::LoggedInputs log_;
  Answers answers_;
  LoggedSampler sampler_;
  LoggedExecutor executor_;
  LoggedMemory memory_;
  AddressRange host_memory_;
  std::unique_ptr<tier::HostTier> host_;
  std::optional<ReplayedStore> store_;
  std::optional<ReplayedSessions> sessions_;
  std::optional<ReplayedArchive> archive_;
  engine::DecisionLog decisions_;
};

}  // namespace

Result<InputReplayReport> ReplayInputs(engine::LoggedInputs log, const std::optional<std::string>& eviction,
                                       engine::DecisionLog::Sink decisions) {
  if (eviction) log.facts.options.eviction = *eviction;
  if (const auto problems = engine::Problems(log.facts); !problems.empty()) {
    return Invalid(fmt::format("{}", fmt::join(problems, "; ")));
  }
  Replay replay(std::move(log), std::move(decisions));
  CACHALOT_RETURN_IF_ERROR(replay.MakeTiers());
  return replay.Run();
}

}  // namespace cachalot::sim
