#include "load/driver.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/file.h"
#include "base/file_limit.h"
#include "base/units.h"
#include "load/asker.h"
#include "load/conversation.h"
#include "load/http_client.h"
#include "load/preflight.h"
#include "load/schedule.h"
#include "load/url.h"
#include "load/workload.h"

namespace cachalot::load {
namespace {

constexpr uint32_t kDefaultClients = 8;
constexpr uint64_t kDefaultRequests = 100;
constexpr uint64_t kTraceLimitBytes = uint64_t{1} << 30;
constexpr uint64_t kOtherFiles = 64;

Nanos Seconds(double seconds) { return Nanos(static_cast<Nanos::rep>(seconds * 1e9)); }
Nanos Milliseconds(double milliseconds) { return Seconds(milliseconds * 1e-3); }

// What is asked, when, and the words for both.
struct Plan {
  std::unique_ptr<Workload> workload;
  Arrivals arrivals = Arrivals::ClosedLoop(0);
  std::string load;
  std::string prompts;
};

Result<sim::Trace> ReadTrace(const std::string& path) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kTraceLimitBytes));
  Result<sim::Trace> trace = ParseLoadTrace(text);
  if (!trace.ok()) return trace.status().Annotate(path);
  return trace;
}

Plan PlanTrace(const LoadOptions& options, sim::Trace trace, const TokenFit& fit) {
  const TraceOptions how{.seed = options.seed,
                         .block_tokens = options.trace_block_tokens,
                         .max_prompt_tokens = options.max_prompt_tokens,
                         .max_tokens = options.max_tokens};
  auto workload = std::make_unique<TraceWorkload>(std::move(trace), how, fit);
  Plan plan;
  plan.arrivals = Arrivals::At(workload->Times(options.trace_speed));
  plan.load = fmt::format("trace at {}x its speed", options.trace_speed);
  plan.prompts = fmt::format("{} requests of {}, {} tokens per block", FormatCount(workload->size()), options.trace,
                             options.trace_block_tokens);
  plan.workload = std::move(workload);
  return plan;
}

Plan PlanSynthetic(const LoadOptions& options, const TokenFit& fit) {
  const SyntheticOptions synthetic{.seed = options.seed,
                                   .prompt_tokens = options.prompt_tokens,
                                   .max_tokens = options.max_tokens,
                                   .prefixes = options.prefixes,
                                   .prefix_tokens = options.prefix_tokens,
                                   .turns = options.turns,
                                   .mean_think = Seconds(options.think_time)};
  Plan plan;
  plan.workload = std::make_unique<SyntheticWorkload>(synthetic, fit);
  if (options.prefixes > 0) {
    plan.prompts = fmt::format("{} shared prefixes of {} tokens, then ", options.prefixes, options.prefix_tokens);
  }
  if (options.turns > 1) plan.prompts += fmt::format("{} turns of ", options.turns);
  plan.prompts += fmt::format("{} tokens, answers of {}", options.prompt_tokens, options.max_tokens);
  if (options.think_time > 0) plan.prompts += fmt::format(", thinking {} s", options.think_time);
  return plan;
}

Plan MakePlan(const LoadOptions& options, sim::Trace trace, const TokenFit& fit) {
  Plan plan = options.trace.empty() ? PlanSynthetic(options, fit) : PlanTrace(options, std::move(trace), fit);
  if (options.rate > 0) {
    plan.arrivals = Arrivals::Poisson(options.rate, options.seed);
    plan.load = fmt::format("Poisson, {} conversations/s", options.rate);
  } else if (options.clients > 0 || options.trace.empty()) {
    const uint32_t clients = options.clients > 0 ? options.clients : kDefaultClients;
    plan.arrivals = Arrivals::ClosedLoop(clients);
    plan.load = fmt::format("closed loop, {} clients", clients);
  }
  return plan;
}

ScheduleLimits LimitsOf(const LoadOptions& options, const Workload& workload) {
  ScheduleLimits limits;
  limits.sessions = workload.size();
  limits.max_in_flight = options.max_in_flight;
  if (options.duration > 0) limits.duration = Seconds(options.duration);
  if (options.requests > 0) limits.requests = options.requests;
  if (options.requests == 0 && options.duration == 0 && options.trace.empty()) limits.requests = kDefaultRequests;
  return limits;
}

class Run {
 public:
  Run(const LoadOptions& options, const Target& target, Plan plan, const Clock& clock, HttpClient* client)
      : options_(options),
        target_(target),
        workload_(std::move(plan.workload)),
        limits_(LimitsOf(options, *workload_)),
        schedule_(std::move(plan.arrivals), limits_),
        clock_(clock),
        client_(client) {}

  void Go(FunctionRef<bool(double share)> go_on, LoadReport* report);

 private:
  // One request under way.
  class Request final : public HttpObserver {
   public:
    Request(Run& run, const TurnStart& start) : run_(run), start_(start), reader_(run.clock_) {}
    void OnHead(const ResponseHead& head) override { reader_.OnHead(head); }
    Status OnBody(std::string_view bytes) override { return reader_.OnBody(bytes); }
    void OnEnd(HttpEnd end, const std::string& why) override {
      reader_.OnEnd();
      record_.answer = reader_.Take();
      record_.ended = run_.clock_.Now();
      Classify(end, why, &record_);
      run_.ended_.push_back(this);
    }

    Run& run_;
    const TurnStart start_;
    AnswerReader reader_;
    RequestRecord record_;
  };

  Nanos now() const { return clock_.Now() - begin_; }
  void SendDue();
  void Begin(const TurnStart& start);
  void HandleEnded(LoadReport* report);
  void Continue(const Request& request);
  Nanos Patience() const;
  double Share() const;

  const LoadOptions& options_;
  const Target& target_;
  const std::unique_ptr<Workload> workload_;
  const ScheduleLimits limits_;
  Schedule schedule_;
  const Clock& clock_;
  HttpClient* const client_;
  Nanos begin_{0};
  std::unordered_map<uint64_t, Conversation> conversations_;
  std::unordered_map<const Request*, std::unique_ptr<Request>> requests_;
  std::vector<const Request*> ended_;
};

void Run::Begin(const TurnStart& start) {
  if (start.turn == 0) {
    conversations_.emplace(start.session, Conversation(workload_->Make(start.session), target_.style));
  }
  std::string text = FormatTurn(options_, target_, conversations_.at(start.session).Body());
  auto owned = std::make_unique<Request>(*this, start);
  Request* const request = owned.get();
  requests_.emplace(request, std::move(owned));
  request->record_.due = begin_ + start.due;
  request->record_.sent = clock_.Now();
  client_->Send(std::move(text), request->record_.sent + Seconds(options_.timeout), request);
}

void Run::SendDue() {
  constexpr int kAtOnce = 64;  // then answers have their turn
  for (int i = 0; i < kAtOnce; ++i) {
    const std::optional<TurnStart> start = schedule_.Take(now());
    if (!start) return;
    Begin(*start);
  }
}

void Run::Continue(const Request& request) {
  const auto found = conversations_.find(request.start_.session);
  const bool ok = request.record_.outcome == Outcome::kOk;
  if (ok) found->second.Answered(request.record_.answer.text);
  if (ok && found->second.has_turn()) {
    return schedule_.ContinueAfter(request.start_, now(), found->second.think());
  }
  conversations_.erase(found);
  schedule_.EndSession(now(), !ok);
}

void Run::HandleEnded(LoadReport* report) {
  for (const Request* ended : std::exchange(ended_, {})) {
    const auto node = requests_.extract(ended);
    report->Add(node.mapped()->record_);
    Continue(*node.mapped());
  }
}

// How long to wait for the network at most.
Nanos Run::Patience() const {
  const std::optional<Nanos> due = schedule_.NextDue();
  return due ? std::max(Nanos(0), *due - now()) : Nanos::max();
}

double Run::Share() const {
  double share = 0;
  const double sent = static_cast<double>(schedule_.taken() - schedule_.in_flight());
  if (limits_.duration != Nanos::max()) share = ToSeconds(now()) / ToSeconds(limits_.duration);
  const uint64_t all =
      std::min(limits_.requests, limits_.sessions == Workload::kEndless ? limits_.requests : limits_.sessions);
  return std::min(1.0, std::max(share, sent / static_cast<double>(std::max<uint64_t>(1, all))));
}

void Run::Go(FunctionRef<bool(double share)> go_on, LoadReport* report) {
  begin_ = clock_.Now();
  while (!schedule_.done() && go_on(Share())) {
    SendDue();
    report->NoteInFlight(schedule_.in_flight());
    client_->Run(Patience());
    HandleEnded(report);
  }
  client_->AbortAll();
  HandleEnded(report);
  report->Finish(now());
}

}  // namespace

Result<LoadReport> RunLoad(const LoadOptions& options, const Clock& clock, FunctionRef<bool(double share)> go_on) {
  CACHALOT_RETURN_IF_ERROR(Validate(options));
  CACHALOT_ASSIGN_OR_RETURN(const Url url, ParseUrl(options.url));
  const uint64_t allowed = RaiseFileLimit(options.max_in_flight + kOtherFiles);
  LoadOptions used = options;
  used.max_in_flight = static_cast<uint32_t>(
      std::min<uint64_t>(options.max_in_flight, std::max<uint64_t>(allowed, kOtherFiles + 1) - kOtherFiles));
  sim::Trace trace;
  if (!options.trace.empty()) {
    CACHALOT_ASSIGN_OR_RETURN(trace, ReadTrace(options.trace));
  }
  CACHALOT_ASSIGN_OR_RETURN(const auto client, HttpClient::Create(url, clock));
  const auto go_on_asking = [&] { return go_on(0); };
  Asker asker(clock, Seconds(options.timeout), client.get(), go_on_asking);
  Result<Target> target = Preflight(used, url, &asker);
  if (!target.ok()) return target.status().Annotate(options.url);
  Plan plan = MakePlan(used, std::move(trace), target->fit);
  LoadReport report({.url = options.url,
                     .endpoint = options.endpoint,
                     .model = target->style.model,
                     .load = plan.load,
                     .prompts = plan.prompts,
                     .seed = options.seed,
                     .fit = target->fit},
                    {.ttft = Milliseconds(options.goodput_ttft),
                     .time_per_token = Milliseconds(options.goodput_itl),
                     .end_to_end = Milliseconds(options.goodput_e2e)});
  Run(used, target.value(), std::move(plan), clock, client.get()).Go(go_on, &report);
  return report;
}

}  // namespace cachalot::load
