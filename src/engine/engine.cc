#include "engine/engine.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/engine_state.h"
#include "sched/admission.h"

namespace cachalot::engine {

Engine::Engine(const EngineOptions& options, exec::Executor& executor, exec::DeviceMemory& memory,
               exec::Sampler& sampler)
    : state_(std::make_unique<State>(options, executor, memory, sampler)) {}

Engine::~Engine() = default;

StepOutput Engine::Step(StepInput input) {
  StepOutput out;
  state_->TakeCancels(input.cancels, &input.arrivals, &out);
  state_->TakeArrivals(std::move(input.arrivals), &out);
  state_->AdmitWaiting();
  state_->RunStep(&out);
  state_->DropFinished();
  out.stats = state_->Stats();
  return out;
}

bool Engine::idle() const { return state_->running.empty() && state_->waiting.empty(); }
void Engine::Drain() { state_->draining = true; }
kv::KvSnapshot Engine::Snapshot() const { return state_->kv.Snapshot(); }

namespace {

// Takes the request out of a list of those that have not started. False when it is not there.
template <class Requests>
bool RemoveUnstarted(RequestId id, Requests* requests, StepOutput* out) {
  const auto found = std::ranges::find(*requests, id, &GenerateRequest::id);
  if (found == requests->end()) return false;
  const auto prompt_tokens = static_cast<uint32_t>(found->prompt.size());
  for (uint32_t c = 0; c < found->n; ++c) {
    out->finishes.push_back({id, c, FinishReason::kCancelled, OkStatus(), prompt_tokens, 0, 0});
  }
  requests->erase(found);
  return true;
}

}  // namespace

void Engine::State::TakeCancels(const std::vector<RequestId>& cancels, std::vector<GenerateRequest>* arrivals,
                                StepOutput* out) {
  for (RequestId id : cancels) {
    if (RemoveUnstarted(id, arrivals, out) || RemoveUnstarted(id, &waiting, out)) ++totals.requests_cancelled;
    const auto runner = std::ranges::find_if(running, [&](const Running& r) { return r.request.id == id; });
    if (runner != running.end()) {
      for (uint32_t c = 0; c < runner->request.n; ++c) Finish(*runner, c, FinishReason::kCancelled, OkStatus(), out);
      ++totals.requests_cancelled;
    }
  }
  DropFinished();
}

uint64_t Engine::State::PeakSlotsOf(const GenerateRequest& request) const {
  return kv::PeakSlotsForked(kv.geometry(), request.prompt.size(), request.prompt.size() + request.max_tokens,
                             request.n, std::min(options.step_rows, options.prefill_chunk));
}

uint32_t Engine::State::RunningSequences() const {
  uint32_t count = 0;
  for (const Running& r : running) count += r.request.n;
  return count;
}

std::optional<Rejection> Engine::State::Refuse(const GenerateRequest& request) const {
  const auto refuse = [&](RejectReason reason, std::string message, uint64_t needed = 0, uint64_t available = 0) {
    return Rejection{request.id, reason, std::move(message), needed, available};
  };
  if (draining) return refuse(RejectReason::kShuttingDown, "the server is shutting down");
  if (request.prompt.empty()) return refuse(RejectReason::kInvalid, "the prompt has no tokens");
  if (request.n == 0) return refuse(RejectReason::kInvalid, "n is 0; at least 1 is needed");
  const auto unknown = std::ranges::find_if(request.prompt, [&](TokenId t) { return t >= executor.vocabulary(); });
  if (unknown != request.prompt.end()) {
    return refuse(RejectReason::kInvalid,
                  fmt::format("prompt token {} is {}, outside the vocabulary of {}", unknown - request.prompt.begin(),
                              *unknown, executor.vocabulary()));
  }
  if (const auto problems = Problems(request.sampling, executor.vocabulary()); !problems.empty()) {
    return refuse(RejectReason::kInvalid, fmt::format("{}", fmt::join(problems, "; ")));
  }

  const sched::CapacityView empty_pool{executor.context_tokens(), kv.geometry().slots, 0, options.max_sequences, 0};
  const uint64_t tokens = request.prompt.size() + uint64_t{request.max_tokens};
  // Beyond the context the peak is of no interest, and may be too large to compute.
  const uint64_t peak = tokens <= executor.context_tokens() ? PeakSlotsOf(request) : 0;
  switch (sched::Admit({request.prompt.size(), request.max_tokens, request.n, peak}, empty_pool)) {
    case sched::Verdict::kContextTooLong:
      return refuse(RejectReason::kContextLength,
                    fmt::format("the prompt has {} tokens and {} more are asked for: {} together, but this model's "
                                "context is {} tokens",
                                request.prompt.size(), request.max_tokens, tokens, executor.context_tokens()),
                    tokens, executor.context_tokens());
    case sched::Verdict::kPoolTooSmall:
      return refuse(RejectReason::kTooLarge,
                    fmt::format("{} tokens in {} sequence(s) need {} KV blocks, but the whole pool has {}", tokens,
                                request.n, peak, kv.geometry().slots),
                    peak, kv.geometry().slots);
    case sched::Verdict::kTooManySequences:
      return refuse(RejectReason::kInvalid,
                    fmt::format("n is {}, but at most {} sequences run at once", request.n, options.max_sequences),
                    request.n, options.max_sequences);
    case sched::Verdict::kAdmit:
    case sched::Verdict::kWait: break;
  }
  if (waiting.size() >= options.max_queue) {
    return refuse(RejectReason::kQueueFull, fmt::format("{} requests are waiting already", waiting.size()),
                  waiting.size() + 1, options.max_queue);
  }
  return std::nullopt;
}

void Engine::State::TakeArrivals(std::vector<GenerateRequest> arrivals, StepOutput* out) {
  for (GenerateRequest& request : arrivals) {
    if (std::optional<Rejection> rejection = Refuse(request)) {
      out->rejections.push_back(std::move(*rejection));
      ++totals.requests_rejected;
    } else {
      waiting.push_back(std::move(request));
      AdmitWaiting();  // so that a burst fills the pool before it counts against the queue
    }
  }
}

void Engine::State::AdmitWaiting() {
  while (!waiting.empty()) {
    GenerateRequest& request = waiting.front();
    const uint64_t peak = PeakSlotsOf(request);
    const sched::CapacityView capacity{executor.context_tokens(), budget.total(), budget.promised(),
                                       options.max_sequences, RunningSequences()};
    if (sched::Admit({request.prompt.size(), request.max_tokens, request.n, peak}, capacity) !=
        sched::Verdict::kAdmit) {
      return;
    }
    Result<kv::SlotPromise> promise = budget.Promise(peak);
    CACHALOT_CHECK(promise.ok());
    Running& admitted = running.emplace_back();
    admitted.promise = std::move(promise).value();
    admitted.request = std::move(request);
    admitted.choices.push_back({kv.Create(), {}, nullptr, false});
    waiting.pop_front();
  }
}

void Engine::State::Finish(Running& running_request, uint32_t choice, FinishReason reason, Status error,
                           StepOutput* out) {
  uint32_t output_tokens = 0;
  if (choice < running_request.choices.size()) {
    Choice& ended = running_request.choices[choice];
    if (ended.finished) return;
    ended.finished = true;
    output_tokens = static_cast<uint32_t>(ended.output.size());
    kv.Free(ended.sequence);
  }
  out->finishes.push_back({running_request.request.id, choice, reason, std::move(error),
                           static_cast<uint32_t>(running_request.request.prompt.size()), 0, output_tokens});
}

void Engine::State::DropFinished() {
  std::erase_if(running, [&](const Running& r) {
    const bool ended = std::ranges::all_of(r.choices, &Choice::finished);
    if (ended) ++totals.requests_finished;
    return ended;
  });
}

EngineStats Engine::State::Stats() const {
  EngineStats stats = totals;
  for (const Running& r : running) {
    for (const Choice& c : r.choices) stats.running_sequences += c.finished ? 0 : 1;
  }
  stats.waiting_requests = static_cast<uint32_t>(waiting.size());
  stats.total_slots = kv.geometry().slots;
  stats.free_slots = kv.free_slots();
  stats.promised_slots = static_cast<uint32_t>(budget.promised());
  return stats;
}

}  // namespace cachalot::engine
