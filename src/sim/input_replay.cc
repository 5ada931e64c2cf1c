#include "sim/input_replay.h"

#include <algorithm>
#include <deque>
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

// What was sampled for each choice that has not ended, by request and choice.
class Answers {
 public:
  void Expect(const engine::GenerateRequest& request) { open_[request.id.value] = {request.n, request.max_tokens}; }
  // Whether each is of an open request, and no more than that asked for.
  bool Add(const std::vector<engine::LoggedToken>& tokens) {
    for (const engine::LoggedToken& token : tokens) {
      const auto open = open_.find(token.request.value);
      if (open == open_.end() || token.choice >= open->second.choices) return false;
      std::vector<Token>& known = by_choice_[{token.request.value, token.choice}];
      if (known.size() >= open->second.tokens) return false;
      known.push_back({token.token, token.stops});
      ++tokens_;
    }
    return true;
  }
  void Forget(uint64_t request, uint32_t choice) {
    by_choice_.erase({request, choice});
    const auto open = open_.find(request);
    if (open != open_.end() && ++open->second.ended >= open->second.choices) open_.erase(open);
  }
  void Forget(uint64_t request) { open_.erase(request); }  // it was refused

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
  struct Open {
    uint32_t choices = 0;
    uint32_t tokens = 0;  // of each, at most
    uint32_t ended = 0;   // choices
  };

  std::map<uint64_t, Open> open_;
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
  Nanos waited() const override { return Nanos(0); }  // steps hear theirs with their input
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

// The steps of a log, one after the other, and what was sampled in those that were read.
class Steps {
 public:
  Steps(engine::InputLogReader& log, Answers& answers) : log_(log), answers_(answers) {}

  // Of the whole log, so that all that was sampled is known before the first one.
  Status ReadAhead(uint64_t most_log_bytes) {
    std::deque<engine::LoggedStep> steps;
    while (std::optional<engine::LoggedStep> step = Next()) {
      if (log_.offset() > most_log_bytes) {
        return Invalid(fmt::format("offset {}: with another policy all of the log is held, and at most {} bytes of it",
                                   log_.offset(), most_log_bytes));
      }
      steps.push_back(std::move(*step));
    }
    ahead_ = std::move(steps);
    return OkStatus();
  }

  std::optional<engine::LoggedStep> Next() {
    std::optional<engine::LoggedStep> step;
    if (!ahead_.empty()) {
      step = std::move(ahead_.front());
      ahead_.pop_front();
      return step;
    }
    if (!damage_.ok()) return std::nullopt;
    const Result<bool> more = log_.Next(&step.emplace());
    damage_ = more.status();
    if (!more.ok() || !*more) return std::nullopt;
    for (const engine::GenerateRequest& request : step->input.arrivals) answers_.Expect(request);
    if (!answers_.Add(std::exchange(step->tokens, {}))) {
      damage_ =
          Corrupt(fmt::format("offset {}: the step before has a token that no open request asked for", log_.offset()));
      return std::nullopt;
    }
    return step;
  }
  // Why there are no more; OK: the log is whole.
  const Status& damage() const { return damage_; }

 private:
  engine::InputLogReader& log_;
  Answers& answers_;
  std::deque<engine::LoggedStep> ahead_;
  Status damage_;
};

class Replay {
 public:
  Replay(engine::InputFacts facts, engine::InputLogReader& log, engine::DecisionLog::Sink decisions)
      : facts_(std::move(facts)),
        steps_(log, answers_),
        sampler_(answers_),
        executor_(facts_),
        memory_(facts_),
        decisions_(std::move(decisions)) {
    facts_.options.decision_log = &decisions_;
  }

  Status ReadAhead(uint64_t most_log_bytes) { return steps_.ReadAhead(most_log_bytes); }

  Status MakeTiers() {
    if (facts_.store) store_.emplace(facts_.layout.groups.size());
    if (facts_.sessions) sessions_.emplace();
    if (facts_.archive) archive_.emplace(facts_.layout);
    if (!facts_.host) return OkStatus();
    CACHALOT_ASSIGN_OR_RETURN(host_memory_, AddressRange::Reserve(facts_.host->memory_bytes));
    CACHALOT_ASSIGN_OR_RETURN(
        host_, tier::HostTier::Make(host_memory_.bytes(), {.slot_bytes = facts_.layout.slot_bytes,
                                                           .groups = static_cast<uint32_t>(facts_.layout.groups.size()),
                                                           .eviction = facts_.host->eviction}));
    return OkStatus();
  }

  InputReplayReport Run() {
    const engine::ModelFacts facts{.identity = facts_.identity,
                                   .step_curve = facts_.step_curve,
                                   .host_rate = facts_.host_rate,
                                   .store = store_ ? &*store_ : nullptr,
                                   .host = host_.get(),
                                   .session_store = sessions_ ? &*sessions_ : nullptr,
                                   .archive = archive_ ? &*archive_ : nullptr};
    engine::Engine engine(facts_.options, executor_, memory_, sampler_, facts);
    InputReplayReport report{.last = {}, .damage = {}};
    while (std::optional<engine::LoggedStep> step = steps_.Next()) {
      const engine::StepOutput out = Step(engine, std::move(*step));
      for (const engine::FinishEvent& end : out.finishes) answers_.Forget(end.id.value, end.choice);
      for (const engine::Rejection& refused : out.rejections) answers_.Forget(refused.id.value);
      report.last = out.stats;
      ++report.steps;
    }
    report.tokens = answers_.tokens();
    report.other_tokens = answers_.unknown();
    report.damage = steps_.damage();
    return report;
  }

 private:
  // As the world outside was in it.
  engine::StepOutput Step(engine::Engine& engine, engine::LoggedStep step) {
    if (step.drains) engine.Drain();
    executor_.FailNext(step.run_failed);
    memory_.SetAnswers(std::move(step.copies));
    if (store_) store_->Begin(std::move(step.store).value_or(engine::StoreAnswers{}));
    if (sessions_) sessions_->Begin(std::move(step.found_sessions), std::move(step.syncs));
    if (archive_) archive_->Begin(std::move(step.archive).value_or(engine::ArchiveAnswers{}));
    for (engine::GenerateRequest& request : step.input.arrivals) AnswerFromLog(request);
    return engine.Step(std::move(step.input));
  }

  void AnswerFromLog(engine::GenerateRequest& request) {
    const uint64_t id = request.id.value;
    request.sampling.seed = id;
    if (!request.stop) return;
    request.stop = [this, id, next = uint32_t{0}]() mutable {
      return std::make_unique<LoggedStop>(answers_, id, next++);
    };
  }

  engine::InputFacts facts_;
  Answers answers_;
  Steps steps_;
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

Result<InputReplayReport> ReplayInputs(engine::InputLogReader& log, const std::optional<OtherPolicy>& other,
                                       engine::DecisionLog::Sink decisions) {
  engine::InputFacts facts = log.facts();
  if (other) facts.options.eviction = other->eviction;
  if (const auto problems = engine::Problems(facts); !problems.empty()) {
    return Invalid(fmt::format("{}", fmt::join(problems, "; ")));
  }
  Replay replay(std::move(facts), log, std::move(decisions));
  CACHALOT_RETURN_IF_ERROR(replay.MakeTiers());
  if (other) CACHALOT_RETURN_IF_ERROR(replay.ReadAhead(other->most_log_bytes));
  return replay.Run();
}

}  // namespace cachalot::sim
