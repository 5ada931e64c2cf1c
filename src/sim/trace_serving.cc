#include "sim/trace_serving.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/random.h"
#include "sim/sim_server.h"

namespace cachalot::sim {
namespace {

constexpr Nanos kNever = Nanos::max();

class Run {
 public:
  Run(const Trace& trace, const TraceServingOptions& options, std::unique_ptr<SimServer> server)
      : trace_(trace), options_(options), server_(std::move(server)) {}

  TraceServingReport Finish() && {
    server_->SleepUntil(ArrivalOf(0));
    while (next_ < trace_.requests.size() || !open_.empty()) Advance();
    report_.duration = server_->now() - ArrivalOf(0);
    const double seconds = ToSeconds(report_.duration);
    report_.mean_in_use = seconds > 0 ? in_use_seconds_ / seconds : 0;
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
    if (input.arrivals.empty() && server_->engine().idle()) {
      const Nanos arrival = next_ < trace_.requests.size() ? ArrivalOf(next_) : kNever;
      const Nanos due = server_->engine().next_due().value_or(kNever);
      if (arrival <= due || due > begun) return server_->SleepUntil(std::min(arrival, due));
    }
    const engine::StepOutput output = server_->Step(std::move(input));
    for (const engine::Rejection& rejection : output.rejections) Refuse(rejection);
    for (const engine::TokenEvent& event : output.tokens) TakeToken(open_.at(event.id.value));
    for (const engine::FinishEvent& event : output.finishes) TakeFinish(event);
    const double in_use = static_cast<double>(output.stats.in_use_slots()) / output.stats.total_slots;
    in_use_seconds_ += in_use * ToSeconds(server_->now() - begun);
    Sample(output.stats, in_use);
    report_.last = output.stats;
  }

  engine::GenerateRequest Arrive(size_t index) {
    const TraceRequest& request = trace_.requests[index];
    const auto output = static_cast<uint32_t>(std::clamp<uint64_t>(request.output_tokens, 1, UINT32_MAX));
    engine::GenerateRequest asked;
    asked.id = RequestId(index + 1);
    asked.prompt = TextOf(request);
    asked.max_tokens = std::max(output, options_.max_tokens);
    asked.sampling.temperature = 0;
    if (asked.max_tokens > output) asked.stop = EndAfter(output);
    Open& open = open_[asked.id.value];
    open.request = {.index = index, .arrival = ArrivalOf(index), .prompt_tokens = request.input_tokens};
    return asked;
  }

  std::vector<TokenId> TextOf(const TraceRequest& request) const {
    std::vector<TokenId> text;
    text.reserve(request.input_tokens);
    for (const uint64_t block : request.blocks) {
      SplitMix64 random(block);
      const uint64_t end = std::min<uint64_t>(text.size() + trace_.block_tokens, request.input_tokens);
      while (text.size() < end) text.push_back(static_cast<TokenId>(random.Below(options_.model.vocabulary)));
    }
    return text;
  }

  void Refuse(const engine::Rejection& rejection) {
    ReplayedRequest& request = open_.at(rejection.id.value).request;
    request.refusal = rejection.message;
    request.first_token = request.finish = server_->now();
    ++report_.refused;
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
    ++report_.served;
    const Nanos ttft = request.first_token - request.arrival;
    if (options_.ttft_target == Nanos(0) || ttft <= options_.ttft_target) ++report_.within_target;
    report_.ttft.Add(ttft);
    report_.e2e.Add(request.finish - request.arrival);
    report_.prompt_tokens += request.prompt_tokens;
    report_.cached_tokens += request.cached_tokens;
    report_.output_tokens += request.output_tokens;
    Close(event.id);
  }

  void Close(RequestId id) {
    if (options_.on_request) options_.on_request(open_.at(id.value).request);
    open_.erase(id.value);
  }

  void Sample(const engine::EngineStats& stats, double in_use) {
    if (options_.sample_every == Nanos(0) || server_->now() < next_sample_) return;
    next_sample_ = server_->now() + options_.sample_every;
    report_.samples.push_back({.time = server_->now(),
                               .running = stats.running_sequences,
                               .waiting = stats.waiting_requests,
                               .in_use = in_use,
                               .idle = static_cast<double>(stats.idle_slots) / stats.total_slots,
                               .prompt_tokens_cached = stats.prompt_tokens_cached,
                               .prompt_tokens_computed = stats.prompt_tokens_computed,
                               .tokens_generated = stats.tokens_generated,
                               .refault_share = stats.refault_share,
                               .pressure = stats.pressure.some.shares[0]});
  }

  const Trace& trace_;
  const TraceServingOptions& options_;
  const std::unique_ptr<SimServer> server_;
  size_t next_ = 0;                          // the first that has not arrived
  std::unordered_map<uint64_t, Open> open_;  // by request id
  Nanos next_sample_{0};
  double in_use_seconds_ = 0;
  TraceServingReport report_;
};

std::vector<std::string> Problems(const Trace& trace, const TraceServingOptions& options) {
  std::vector<std::string> problems = engine::Problems(options.engine);
  if (trace.requests.empty()) problems.push_back("the trace has no requests");
  if (options.slots == 0) problems.push_back("the pool has no blocks");
  if (!(options.rate > 0 && options.rate <= 1e6)) {
    problems.push_back(fmt::format("a rate of {}: expected more than 0, at most a million", options.rate));
  }
  for (const double seconds : options.model.curve) {
    if (!(seconds >= 0 && seconds < 1e6)) {
      problems.push_back(fmt::format("the step curve has {} s in it: expected 0 to a million", seconds));
    }
  }
  return problems;
}

}  // namespace

Result<TraceServingReport> ServeTrace(const Trace& trace, const TraceServingOptions& options) {
  if (const auto problems = Problems(trace, options); !problems.empty()) {
    return Invalid(fmt::format("{}", fmt::join(problems, "; ")));
  }
  CACHALOT_ASSIGN_OR_RETURN(std::unique_ptr<SimServer> server,
                            SimServer::Make(options.engine, options.model, options.slots));
  return Run(trace, options, std::move(server)).Finish();
}

}  // namespace cachalot::sim
