#include "load/resume_driver.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "load/asker.h"
#include "load/conversation.h"
#include "load/http_client.h"
#include "load/idle_way.h"
#include "load/preflight.h"
#include "load/url.h"

namespace cachalot::load {
namespace {

Nanos Seconds(double seconds) { return Nanos(static_cast<Nanos::rep>(seconds * 1e9)); }

class ResumeRun {
 public:
  ResumeRun(const ResumeOptions& options, const Target& target, Asker* asker, IdleWay* way, const ResumeHooks& hooks)
      : options_(options),
        request_options_(AsLoadOptions(options)),
        target_(target),
        asker_(*asker),
        way_(*way),
        hooks_(hooks) {}

  Status Go(ResumeReport* report);
  // Of all that is to be asked, what was.
  double share() const { return static_cast<double>(asked_) / static_cast<double>(std::max<uint64_t>(1, total_)); }

 private:
  struct Lying {
    uint64_t number;
    Conversation conversation;
  };

  std::string Words(uint64_t conversation, uint32_t part, double tokens) const;
  Result<RequestRecord> Ask(const Lying& lying, std::string_view members);
  Result<Lying> Build(std::vector<uint32_t> turn_tokens);
  Result<Lying> BuildAndAnswer();
  Status Suspend(Rest rest, const Lying& lying, ResumeReport* report);
  Status Push();
  Status Restart();
  Status Return(Rest rest, const Lying& lying, ResumeReport* report);
  Status MeasureCold(ResumeReport* report);
  Status MeasureOneByOne(Rest rest, ResumeReport* report);
  Status MeasureTogether(Rest rest, ResumeReport* report);

  const ResumeOptions& options_;
  const LoadOptions request_options_;
  const Target& target_;
  Asker& asker_;
  IdleWay& way_;
  const ResumeHooks& hooks_;
  uint64_t next_number_ = 0;
  uint64_t asked_ = 0;
  uint64_t total_ = 0;
};

std::string ResumeRun::Words(uint64_t conversation, uint32_t part, double tokens) const {
  std::string text;
  AppendWords({.seed = options_.seed, .kind = TextKind::kTurn, .index = conversation, .part = part},
              WordsFor(tokens, target_.fit), &text);
  return text;
}

// A conversation whose turns have so many tokens each.
Result<ResumeRun::Lying> ResumeRun::Build(std::vector<uint32_t> turn_tokens) {
  const uint64_t number = next_number_++;
  Session session;
  for (const uint32_t tokens : turn_tokens) {
    const auto part = static_cast<uint32_t>(session.turns.size());
    const double extra = part == 0 ? target_.fit.extra_tokens : 0;
    session.turns.push_back(
        {.text = Words(number, part, tokens - extra), .max_tokens = options_.max_tokens, .think = Nanos(0)});
  }
  return Lying{number, Conversation(std::move(session), target_.style)};
}

Result<RequestRecord> ResumeRun::Ask(const Lying& lying, std::string_view members) {
  RequestRecord record = asker_.AskForAnswer(FormatTurn(request_options_, target_, lying.conversation.Body(members)));
  ++asked_;
  if (record.outcome == Outcome::kOk) return record;
  return Unavailable(fmt::format("conversation {}: {}: {}", lying.number, OutcomeName(record.outcome), record.why));
}

Result<ResumeRun::Lying> ResumeRun::BuildAndAnswer() {
  CACHALOT_ASSIGN_OR_RETURN(Lying lying, Build({options_.prompt_tokens, options_.turn_tokens}));
  CACHALOT_ASSIGN_OR_RETURN(const RequestRecord record, Ask(lying, way_.Members(lying.number)));
  lying.conversation.Answered(record.answer.text);
  return lying;
}

Status ResumeRun::Suspend(Rest rest, const Lying& lying, ResumeReport* report) {
  const Nanos begin = asker_.clock().Now();
  CACHALOT_RETURN_IF_ERROR(way_.Suspend(lying.number).Annotate(fmt::format("suspending {}", lying.number)));
  report->AddSuspend(rest, asker_.clock().Now() - begin);
  return OkStatus();
}

Status ResumeRun::Push() {
  for (uint64_t pushed = 0; pushed < options_.push_tokens; pushed += options_.prompt_tokens) {
    CACHALOT_ASSIGN_OR_RETURN(const Lying other, Build({options_.prompt_tokens}));
    CACHALOT_RETURN_IF_ERROR(Ask(other, "").status());
  }
  return OkStatus();
}

// Until the server answers again.
Status ResumeRun::Restart() {
  constexpr Nanos kPause = std::chrono::milliseconds(100);
  CACHALOT_RETURN_IF_ERROR(hooks_.restart());
  const Nanos deadline = asker_.clock().Now() + Seconds(options_.timeout);
  for (;;) {
    const Status up = asker_.AskForJson(FormatRequest(target_.url, options_.api_key, "/models", nullptr)).status();
    if (up.ok()) return OkStatus();
    if (!asker_.go_on() || asker_.clock().Now() > deadline) return up.Annotate("after the restart");
    asker_.Wait(kPause);
  }
}

Status ResumeRun::Return(Rest rest, const Lying& lying, ResumeReport* report) {
  asker_.Wait(Seconds(options_.idle));
  ResumeSample sample;
  if (rest != Rest::kCold) {
    CACHALOT_ASSIGN_OR_RETURN(sample.where, way_.Where(lying.number));
    CACHALOT_RETURN_IF_ERROR(hooks_.before_return());
  }
  const Nanos begin = asker_.clock().Now();
  const Result<bool> restored = way_.Restore(lying.number);
  if (!restored.ok()) return restored.status().Annotate(fmt::format("restoring {}", lying.number));
  if (*restored) sample.restore = asker_.clock().Now() - begin;
  CACHALOT_ASSIGN_OR_RETURN(const RequestRecord record, Ask(lying, way_.Members(lying.number)));
  sample.ttft = sample.restore + TimeToFirstToken(record);
  sample.per_token = TimePerToken(record);
  if (record.answer.usage) {
    sample.prompt_tokens = record.answer.usage->prompt_tokens;
    sample.cached_tokens = record.answer.usage->cached_tokens;
  }
  report->Add(rest, std::move(sample));
  return OkStatus();
}

// Texts as long as those that come back.
Status ResumeRun::MeasureCold(ResumeReport* report) {
  for (uint32_t i = 0; i < options_.conversations; ++i) {
    CACHALOT_ASSIGN_OR_RETURN(const Lying lying,
                              Build({options_.prompt_tokens + options_.max_tokens + options_.turn_tokens}));
    CACHALOT_RETURN_IF_ERROR(Return(Rest::kCold, lying, report));
  }
  return OkStatus();
}

Status ResumeRun::MeasureOneByOne(Rest rest, ResumeReport* report) {
  for (uint32_t i = 0; i < options_.conversations; ++i) {
    CACHALOT_ASSIGN_OR_RETURN(const Lying lying, BuildAndAnswer());
    if (rest == Rest::kSuspended) CACHALOT_RETURN_IF_ERROR(Suspend(rest, lying, report));
    CACHALOT_RETURN_IF_ERROR(Return(rest, lying, report));
  }
  return OkStatus();
}

Status ResumeRun::MeasureTogether(Rest rest, ResumeReport* report) {
  std::vector<Lying> all;
  for (uint32_t i = 0; i < options_.conversations; ++i) {
    CACHALOT_ASSIGN_OR_RETURN(Lying lying, BuildAndAnswer());
    if (rest == Rest::kRestarted && way_.name() != "none") CACHALOT_RETURN_IF_ERROR(Suspend(rest, lying, report));
    all.push_back(std::move(lying));
  }
  CACHALOT_RETURN_IF_ERROR(rest == Rest::kRestarted ? Restart() : Push());
  for (const Lying& lying : all) CACHALOT_RETURN_IF_ERROR(Return(rest, lying, report));
  return OkStatus();
}

Status ResumeRun::Go(ResumeReport* report) {
  const std::vector<Rest> rests = RestsOf(options_);
  total_ = uint64_t{options_.conversations} * (2 * rests.size() - 1);
  if (std::ranges::find(rests, Rest::kPushed) != rests.end()) total_ += options_.push_tokens / options_.prompt_tokens;
  for (const Rest rest : rests) {
    Status status;
    if (rest == Rest::kCold) {
      status = MeasureCold(report);
    } else if (rest == Rest::kHot || rest == Rest::kSuspended) {
      status = MeasureOneByOne(rest, report);
    } else {
      status = MeasureTogether(rest, report);
    }
    if (!status.ok()) return status.Annotate(std::string(RestName(rest)));
  }
  return OkStatus();
}

}  // namespace

Result<ResumeReport> RunResume(const ResumeOptions& options, const Clock& clock, const ResumeHooks& hooks) {
  CACHALOT_RETURN_IF_ERROR(Validate(options));
  CACHALOT_ASSIGN_OR_RETURN(const Url url, ParseUrl(options.url));
  CACHALOT_ASSIGN_OR_RETURN(const auto client, HttpClient::Create(url, clock));
  const ResumeRun* run = nullptr;
  const auto go_on = [&] { return hooks.go_on(run == nullptr ? 0 : run->share()); };
  Asker asker(clock, Seconds(options.timeout), client.get(), go_on);
  Result<Target> target = Preflight(AsLoadOptions(options), url, &asker);
  if (!target.ok()) return target.status().Annotate(options.url);
  CACHALOT_ASSIGN_OR_RETURN(const std::unique_ptr<IdleWay> way, MakeIdleWay(options, url, &asker));
  ResumeReport report(
      {.url = options.url, .model = target->style.model, .way = way->name(), .options = options, .fit = target->fit});
  ResumeRun measured(options, *target, &asker, way.get(), hooks);
  run = &measured;
  const Status status = measured.Go(&report);
  if (!status.ok()) return status;
  return report;
}

}  // namespace cachalot::load
