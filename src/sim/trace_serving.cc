#include "sim/trace_serving.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/random.h"
#include "sim/sim_server.h"
#include "sim/trace_text.h"

namespace cachalot::sim {
namespace {

constexpr Nanos kNever = Nanos::max();
constexpr double kLongestArrival = 1e8, kLongestSeconds = 1e9;  // so that no time overflows
constexpr uint64_t kMostMadeUp = uint64_t{1} << 20;             // tokens of one answer; what comes after is sampled

double WasteOf(const KvLedger& ledger) {
  const uint64_t taken = ledger.Sum() - ledger.free_bytes - ledger.padding_bytes;
  return taken == 0 ? 0 : static_cast<double>(ledger.waste_bytes) / static_cast<double>(taken);
}

uint32_t OutputOf(const TraceRequest& request) {
  return static_cast<uint32_t>(std::clamp<uint64_t>(request.output_tokens, 1, UINT32_MAX));
}

constexpr size_t kMostTenants = 4096;

// Who asks, by what the trace calls them.
using Tenants = std::unordered_map<uint64_t, TenantId>;

Tenants TenantsOf(const Trace& trace) {
  Tenants tenants;
  for (const TraceRequest& request : trace.requests) {
    tenants.emplace(request.tenant, TenantId(static_cast<uint32_t>(tenants.size())));
  }
  return tenants;
}

class Run {
 public:
  Run(const Trace& trace, const TraceServingOptions& options, Tenants tenants, std::unique_ptr<SimServer> server)
      : trace_(trace), options_(options), tenants_(std::move(tenants)), server_(std::move(server)) {}

  Result<TraceServingReport> Finish() && {
    server_->SleepUntil(ArrivalOf(0));
    while (next_ < trace_.requests.size() || !open_.empty()) {
      Advance();
      if (ToSeconds(server_->now()) < kLongestSeconds) continue;
      return Invalid(fmt::format("after {} s, {} of {} requests have arrived and {} are open: expected shorter steps",
                                 kLongestSeconds, next_, trace_.requests.size(), open_.size()));
    }
    report_.duration = server_->now() - ArrivalOf(0);
    report_.time = server_->time();
    report_.moved = server_->moved();
    const double seconds = ToSeconds(report_.duration);
    report_.mean_in_use = seconds > 0 ? in_use_seconds_ / seconds : 0;
    report_.mean_waste = in_use_seconds_ > 0 ? wasted_seconds_ / in_use_seconds_ : 0;
    return std::move(report_);
  }

 private:
  struct Open {
    ReplayedRequest request;
    Nanos last_token{0};
  };

  Nanos ArrivalOf(size_t index) const {
    return Nanos(std::llround(static_cast<double>(trace_.requests[index].arrival.count()) / options_.rate));
  }

  void Advance() {
    const Nanos begun = server_->now();
    engine::StepInput input;
    while (next_ < trace_.requests.size() && ArrivalOf(next_) <= begun) input.arrivals.push_back(Arrive(next_++));
    const Nanos next = next_ < trace_.requests.size() ? ArrivalOf(next_) : kNever;
    const std::optional<engine::StepOutput> step = server_->Advance(std::move(input), next);
    if (step) Take(*step);
    const double seconds = ToSeconds(server_->now() - begun);
    in_use_seconds_ += in_use_ * seconds;
    wasted_seconds_ += in_use_ * WasteOf(report_.last.ledger) * seconds;
  }

  void Take(const engine::StepOutput& output) {
    for (const engine::Rejection& rejection : output.rejections) Refuse(rejection);
    for (const engine::TokenEvent& event : output.tokens) TakeToken(open_.at(event.id.value));
    for (const engine::FinishEvent& event : output.finishes) TakeFinish(event);
    in_use_ = static_cast<double>(output.stats.in_use_slots()) / output.stats.total_slots;
    Sample(output.stats);
    report_.last = output.stats;
  }

  engine::GenerateRequest Arrive(size_t index) {
    const TraceRequest& request = trace_.requests[index];
    const uint32_t output = OutputOf(request);
    engine::GenerateRequest asked;
    asked.id = RequestId(index + 1);
    asked.max_tokens = AskedOf(request, options_);
    asked.sampling.temperature = 0;
    asked.sampling.seed = index + 1;
    if (options_.tenants) asked.tenant = tenants_.at(request.tenant);
    if (options_.sessions && request.session != 0) asked.session = {.owner = "", .id = std::to_string(request.session)};
    SetText(request, &asked);
    if (asked.max_tokens > output) asked.stop = EndAfter(output);
    Open& open = open_[asked.id.value];
    open.request = {.index = index, .arrival = ArrivalOf(index), .prompt_tokens = request.input_tokens};
    return asked;
  }

  // Its prompt, and the answer as far as it is known; the rest of it nobody says again.
  void SetText(const TraceRequest& request, engine::GenerateRequest* asked) {
    const std::vector<uint32_t> words = WordsOf(trace_, request);
    const size_t prompt = std::min<size_t>(words.size(), request.input_tokens);
    std::vector<TokenId> answer;
    for (size_t i = 0; i < words.size(); ++i) {
      (i < prompt ? asked->prompt : answer).push_back(TokenOf(words[i], options_.model.vocabulary));
    }
    SplitMix64 random(~asked->sampling.seed);
    const size_t made_up = std::min({uint64_t{asked->max_tokens}, request.output_tokens + 1, kMostMadeUp});
    while (answer.size() < made_up) {
      answer.push_back(static_cast<TokenId>(random.Below(options_.model.vocabulary)));
    }
    server_->answers().SetScript(asked->sampling.seed, std::move(answer));
  }

  void Refuse(const engine::Rejection& rejection) {
    ReplayedRequest& request = open_.at(rejection.id.value).request;
    request.refusal = rejection.message;
    request.first_token = request.finish = server_->now();
    if (report_.refused++ == 0) report_.first_refusal = rejection.message;
    Close(rejection.id);
  }

  void TakeToken(Open& open) {
    const Nanos now = server_->now();
    if (open.request.output_tokens++ == 0) {
      open.request.first_token = now;
    } else {
      report_.itl.Add(now - open.last_token);
    }
    open.last_token = now;
  }

  void TakeFinish(const engine::FinishEvent& event) {
    ReplayedRequest& request = open_.at(event.id.value).request;
    request.finish = server_->now();
    request.cached_tokens = event.cached_tokens;
    request.host_tokens = event.host_tokens;
    request.disk_tokens = event.disk_tokens;
    ++report_.served;
    const Nanos ttft = request.first_token - request.arrival;
    if (options_.ttft_target == Nanos(0) || ttft <= options_.ttft_target) ++report_.within_target;
    report_.ttft.Add(ttft);
    report_.e2e.Add(request.finish - request.arrival);
    report_.prompt_tokens += request.prompt_tokens;
    report_.cached_tokens += request.cached_tokens;
    report_.host_tokens += request.host_tokens;
    report_.disk_tokens += request.disk_tokens;
    report_.output_tokens += request.output_tokens;
    Close(event.id);
  }

  void Close(RequestId id) {
    if (options_.on_request) options_.on_request(open_.at(id.value).request);
    server_->answers().Forget(id.value);
    open_.erase(id.value);
  }

  void Sample(const engine::EngineStats& stats) {
    if (options_.sample_every == Nanos(0) || server_->now() < next_sample_) return;
    next_sample_ = server_->now() + options_.sample_every;
    report_.samples.push_back({.time = server_->now(),
                               .running = stats.running_sequences,
                               .waiting = stats.waiting_requests,
                               .in_use = in_use_,
                               .idle = static_cast<double>(stats.idle_slots) / stats.total_slots,
                               .prompt_tokens_cached = stats.prompt_tokens_cached,
                               .prompt_tokens_computed = stats.prompt_tokens_computed,
                               .tokens_generated = stats.tokens_generated,
                               .tokens_computed = stats.tokens_computed,
                               .refault_tokens = stats.refault_tokens,
                               .refault_share = stats.refault_share,
                               .pressure = stats.pressure.some.shares[0],
                               .waste = WasteOf(stats.ledger),
                               .host_blocks = stats.tiers.host_cached_bytes / server_->slot_bytes(),
                               .disk_blocks = stats.tiers.blocks,
                               .spent = server_->time(),
                               .moved = server_->moved()});
  }

  const Trace& trace_;
  const TraceServingOptions& options_;
  const Tenants tenants_;
  const std::unique_ptr<SimServer> server_;
  size_t next_ = 0;                          // the first that has not arrived
  std::unordered_map<uint64_t, Open> open_;  // by request id
  Nanos next_sample_{0};
  double in_use_ = 0;  // share of the pool, since the last step
  double in_use_seconds_ = 0, wasted_seconds_ = 0;
  TraceServingReport report_;
};

std::vector<std::string> Problems(const Trace& trace, const TraceServingOptions& options) {
  std::vector<std::string> problems = engine::Problems(options.engine);
  if (trace.requests.empty()) problems.push_back("the trace has no requests");
  for (std::string& problem : Problems(options.model, options.slots, options.tiers)) {
    problems.push_back(std::move(problem));
  }
  if (!(options.rate > 0 && options.rate <= 1e6)) {
    problems.push_back(fmt::format("a rate of {}: expected more than 0, at most a million", options.rate));
  } else if (!trace.requests.empty()) {
    const double last = ToSeconds(trace.requests.back().arrival) / options.rate;
    if (last > kLongestArrival) {
      problems.push_back(fmt::format("at a rate of {} the last request arrives after {} s: expected at most {}",
                                     options.rate, last, kLongestArrival));
    }
  }
  const auto is_time = [](double seconds) { return seconds >= 0 && seconds <= 1e6; };
  if (const auto wrong = std::ranges::find_if_not(options.model.curve, is_time); wrong != options.model.curve.end()) {
    problems.push_back(fmt::format("the step curve has {} s in it: expected 0 to a million", *wrong));
  }
  return problems;
}

}  // namespace

uint32_t AskedOf(const TraceRequest& request, const TraceServingOptions& options) {
  const auto allowed = static_cast<uint32_t>(std::min<uint64_t>(request.asked_tokens, UINT32_MAX));
  return std::max({OutputOf(request), allowed, options.max_tokens});
}

Result<TraceServingReport> ServeTrace(const Trace& trace, const TraceServingOptions& options) {
  if (const auto problems = Problems(trace, options); !problems.empty()) {
    return Invalid(fmt::format("{}", fmt::join(problems, "; ")));
  }
  Tenants tenants = TenantsOf(trace);
  if (options.tenants && tenants.size() > kMostTenants) {
    return Invalid(fmt::format("the trace tells {} tenants apart: expected at most {}, or that they count as one",
                               tenants.size(), kMostTenants));
  }
  engine::EngineOptions engine = options.engine;
  if (options.tenants) engine.tenants.assign(tenants.size(), engine.terms);
  CACHALOT_ASSIGN_OR_RETURN(std::unique_ptr<SimServer> server,
                            SimServer::Make(engine, options.model, options.slots, options.tiers));
  return Run(trace, options, std::move(tenants), std::move(server)).Finish();
}

}  // namespace cachalot::sim
