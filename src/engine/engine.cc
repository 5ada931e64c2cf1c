#include "engine/engine.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "engine/decision_log.h"
#include "engine/engine_state.h"
#include "engine/input_log.h"
#include "kv/eviction.h"
#include "sched/admission.h"

namespace cachalot::engine {

std::vector<std::string> Problems(const EngineOptions& options) {
  std::vector<std::string> problems;
  const auto positive = [&](const char* name, uint32_t value) {
    if (value == 0) problems.push_back(fmt::format("{} is 0; expected at least 1", name));
  };
  positive("max-sequences", options.max_sequences);
  positive("step-rows", options.step_rows);
  positive("prefill-chunk", options.prefill_chunk);
  if (options.admission != "guaranteed" && options.admission != "expected" && options.admission != "optimistic") {
    problems.push_back(
        fmt::format("admission is \"{}\"; expected guaranteed, expected or optimistic", options.admission));
  }
  if (!(options.admission_reserve >= 0 && options.admission_reserve <= 0.9)) {
    problems.push_back(fmt::format("admission-reserve is {}; expected 0 to 0.9", options.admission_reserve));
  }
  if (!(options.verify_hits >= 0 && options.verify_hits <= 1)) {
    problems.push_back(fmt::format("verify-hits is {}; expected 0 to 1", options.verify_hits));
  }
  if (!(options.ttft_target >= 0 && options.ttft_target <= 1e6)) {
    problems.push_back(fmt::format("ttft-target is {}; expected 0 to 1000000 seconds", options.ttft_target));
  }
  if (!(options.pin_budget >= 0 && options.pin_budget <= 0.9)) {
    problems.push_back(fmt::format("pin-budget is {}; expected 0 to 0.9", options.pin_budget));
  }
  if (const auto policy = kv::MakeEvictionPolicy(options.eviction); !policy.ok()) {
    problems.push_back(fmt::format("eviction: {}", policy.status().message()));
  }
  return problems;
}

namespace {

constexpr uint64_t kQuantumTokens = 512;  // of a tenant's turn
constexpr uint64_t kPromotionPart = 4;    // 1/4 of the pool comes up at a time

TierRateTable HostRates(const std::optional<TierRate>& up) {
  TierRateTable rates;
  rates[TierIndex(TierId::kHost)][static_cast<size_t>(Direction::kUp)] = up;
  return rates;
}

// Null without a cache. Requires that Problems() found nothing.
std::unique_ptr<kv::EvictionPolicy> PolicyOf(const EngineOptions& options) {
  if (!options.prefix_cache) return nullptr;
  Result<std::unique_ptr<kv::EvictionPolicy>> policy = kv::MakeEvictionPolicy(options.eviction);
  CACHALOT_CHECK(policy.ok());
  return std::move(policy).value();
}

}  // namespace

Engine::State::State(const EngineOptions& options_in, exec::Executor& executor_in, exec::DeviceMemory& memory_in,
                     exec::Sampler& sampler_in, const ModelFacts& facts_in, std::unique_ptr<kv::EvictionPolicy> policy)
    : options(options_in),
      executor(executor_in),
      memory(memory_in),
      sampler(sampler_in),
      store(facts_in.store),
      host(facts_in.host),
      host_rates(HostRates(facts_in.host_rate)),
      session_store(facts_in.session_store),
      archive(facts_in.archive),
      identity(facts_in.identity),
      step_cost(facts_in.step_curve ? cost::StepCost(*facts_in.step_curve) : cost::StepCost()),
      kv(kv::GeometryOf(executor_in.layout(), memory_in.slots()), std::move(policy), &step_cost,
         options_in.shadow_index),
      work_shape(kv.geometry().windows),
      full_part(kv::FullPart(kv.geometry())),
      sliding_part(kv::SlidingPart(kv.geometry())),
      budget(memory_in.slots()),
      pins(kv, budget, static_cast<uint32_t>(options_in.pin_budget * memory_in.slots())),
      up(uint64_t{memory_in.slots()} * memory_in.slot_bytes() / kPromotionPart),
      fair_share(kQuantumTokens),
      sessions(options_in.sessions),
      down(options_in.disk_write_rate.bytes) {
  if (host != nullptr || options.decision_log != nullptr) {
    kv.OnLeaving(identity, [this](const kv::LeavingBlock& block) {
      if (options.decision_log != nullptr) options.decision_log->Evicted(block);
      if (host != nullptr) TakeLeaving(block);
    });
  }
  for (uint32_t i = 0; i < options.tenants.size(); ++i) fair_share.SetWeight(TenantId(i), options.tenants[i].weight);
}

Engine::Engine(const EngineOptions& options, exec::Executor& executor, exec::DeviceMemory& memory,
               exec::Sampler& sampler, const ModelFacts& facts)
    : Engine(options, executor, memory, sampler, facts, PolicyOf(options)) {}

Engine::Engine(const EngineOptions& options, exec::Executor& executor, exec::DeviceMemory& memory,
               exec::Sampler& sampler, const ModelFacts& facts, std::unique_ptr<kv::EvictionPolicy> policy)
    : state_(std::make_unique<State>(options, executor, memory, sampler, facts, std::move(policy))) {}

Engine::~Engine() = default;

StepOutput Engine::Step(StepInput input) {
  StepOutput out;
  if (state_->options.input_log != nullptr) state_->options.input_log->BeginStep(input);
  if (state_->options.decision_log != nullptr) state_->options.decision_log->BeginStep(input.now);
  const Nanos begun = std::exchange(state_->now, input.now);
  state_->unix_seconds = input.unix_seconds;
  state_->kv.SetNow(input.now);
  state_->TakeFoundSessions();
  state_->ObserveThrash();
  state_->EndRetention();
  state_->CountTime(input);
  state_->TellOutcomes(begun, input.last_duration);
  state_->LearnStep(input.last_duration - input.last_stalled);
  state_->settled = false;
  state_->admission_due |= std::exchange(state_->awaits_running, false);
  state_->TakeCancels(input.cancels, &input.arrivals, &out);
  state_->TakeArrivals(std::move(input.arrivals), &out);
  state_->PollStore();
  state_->AdvancePrefetches();
  state_->GivePlaces();
  state_->AdmitWaiting();
  state_->RunStep(&out);
  state_->DropFinished();
  CACHALOT_DCHECK(state_->options.admission != "guaranteed" ||
                  state_->budget.promised() + state_->kv.full_slots_in_use() <= state_->budget.total());
  state_->WriteBehind();
  state_->HandDownAhead();
  state_->EndSessions();
  state_->HandDownIdle();
  state_->TakeSessionCommands(std::move(input.session_commands), &out);
  state_->PollSessions(&out);
  for (const Inquiry& inquiry : input.inquiries) out.answers.push_back(state_->AnswerTo(inquiry));
  state_->ScrubFreed();
  state_->RenewLedger();
  out.stats = state_->Stats();
  if (state_->options.decision_log != nullptr) state_->options.decision_log->EndStep(out);
  if (state_->options.input_log != nullptr) state_->options.input_log->EndStep(out);
  return out;
}

bool Engine::idle() const { return state_->running.empty() && state_->waiting.empty(); }
std::optional<Nanos> Engine::next_due() const { return state_->NextDue(); }

void Engine::OnTransferEnd(std::function<void()> wake) {
  if (state_->session_store != nullptr) state_->session_store->OnEnd(wake);
  if (state_->archive != nullptr) state_->archive->OnEnd(wake);
  if (state_->store != nullptr) state_->store->OnEnd(std::move(wake));
}

bool Engine::awaits_transfers() const {
  const auto waits = [&](const Request& r) {
    return r.loading != nullptr && !r.loading->meeting.done() && !state_->FrontMayRun(*r.loading) &&
           !state_->MayJoin(r);
  };
  const auto loads = [](const Prefetch& p) { return p.loading != nullptr; };
  if (state_->admission_due && !state_->waiting.empty()) return false;  // one of them may begin
  return std::ranges::all_of(state_->running, waits) &&
         (!state_->running.empty() || std::ranges::any_of(state_->up.prefetches, loads));
}

Nanos Engine::stalled() const { return state_->memory.waited(); }

bool Engine::writes_pending() const {
  if (state_->session_store != nullptr && !state_->session_store->idle()) return true;
  return state_->store != nullptr &&
         (!state_->down.empty() || !state_->slot_copies.empty() || state_->store->stats().transfers > 0);
}
void Engine::Drain() {
  state_->draining = true;
  if (state_->options.input_log != nullptr) state_->options.input_log->Drained();
}
kv::KvSnapshot Engine::Snapshot() const { return state_->kv.Snapshot(); }

namespace {

void CancelAll(const GenerateRequest& asked, StepOutput* out) {
  for (uint32_t c = 0; c < asked.n; ++c) {
    out->finishes.push_back(
        {asked.id, c, FinishReason::kCancelled, OkStatus(), static_cast<uint32_t>(asked.prompt.size()), 0, 0});
  }
}

}  // namespace

void Engine::State::TakeCancels(const std::vector<RequestId>& cancels, std::vector<GenerateRequest>* arrivals,
                                StepOutput* out) {
  for (const RequestId id : cancels) {
    const auto arrival = std::ranges::find(*arrivals, id, &GenerateRequest::id);
    if (arrival != arrivals->end()) {
      CancelAll(*arrival, out);
      arrivals->erase(arrival);
      ++totals.requests_cancelled;
      continue;
    }
    for (std::deque<Request>* requests : {&waiting, &running}) {
      const auto found = std::ranges::find_if(*requests, [&](const Request& r) { return r.asked.id == id; });
      if (found == requests->end()) continue;
      for (uint32_t c = 0; c < found->asked.n; ++c) Finish(*found, c, FinishReason::kCancelled, OkStatus(), out);
      if (requests == &waiting) {
        fair_share.Leave(found->asked.tenant);
        waiting.erase(found);
      }
      ++totals.requests_cancelled;
      break;
    }
  }
  DropFinished();
}

std::optional<Rejection> Engine::State::Refuse(const GenerateRequest& asked) const {
  const auto refuse = [&](RejectReason reason, std::string message, uint64_t needed = 0, uint64_t available = 0) {
    return Rejection{asked.id, reason, std::move(message), needed, available};
  };
  if (draining) return refuse(RejectReason::kShuttingDown, "the server is shutting down");
  if (!poison.ok()) return refuse(RejectReason::kPoisoned, poison.message());
  if (asked.prompt.empty()) return refuse(RejectReason::kInvalid, "the prompt has no tokens");
  if (asked.n == 0) return refuse(RejectReason::kInvalid, "n is 0; at least 1 is needed");
  const auto unknown = std::ranges::find_if(asked.prompt, [&](TokenId t) { return t >= executor.vocabulary(); });
  if (unknown != asked.prompt.end()) {
    return refuse(RejectReason::kInvalid, fmt::format("prompt token {} is {}, outside the vocabulary of {}",
                                                      unknown - asked.prompt.begin(), *unknown, executor.vocabulary()));
  }
  if (const auto problems = Problems(asked.sampling, executor.vocabulary()); !problems.empty()) {
    return refuse(RejectReason::kInvalid, fmt::format("{}", fmt::join(problems, "; ")));
  }

  const sched::CapacityView empty_pool{executor.context_tokens(), kv.geometry().slots - pins.most_slots(), 0,
                                       options.max_sequences, 0};
  const Load load = LoadOf(asked);
  const uint64_t tokens = load.context_tokens, peak = load.kv_blocks;
  switch (sched::Admit({asked.prompt.size(), asked.max_tokens, asked.n, peak, peak}, empty_pool)) {
    case sched::Verdict::kContextTooLong:
      return refuse(RejectReason::kContextLength,
                    fmt::format("the prompt has {} tokens and {} more are asked for: {} together, but this model's "
                                "context is {} tokens",
                                asked.prompt.size(), asked.max_tokens, tokens, executor.context_tokens()),
                    tokens, executor.context_tokens());
    case sched::Verdict::kPoolTooSmall:
      return refuse(
          RejectReason::kTooLarge,
          fmt::format("{} tokens in {} sequence(s) need {} KV blocks, but the whole pool has {}{}", tokens, asked.n,
                      peak, empty_pool.total_slots, pins.most_slots() == 0 ? "" : " beside those that may be pinned"),
          peak, empty_pool.total_slots);
    case sched::Verdict::kTooManySequences:
      return refuse(RejectReason::kInvalid,
                    fmt::format("n is {}, but at most {} sequences run at once", asked.n, options.max_sequences),
                    asked.n, options.max_sequences);
    case sched::Verdict::kAdmit:
    case sched::Verdict::kWait: break;
  }
  if (auto refused = RefuseBySession(asked)) return refused;
  if (auto refused = RefuseByTerms(asked, load)) return refused;
  return RefuseByQueue(asked);
}

void Engine::State::TakeArrivals(std::vector<GenerateRequest> arrivals, StepOutput* out) {
  for (GenerateRequest& asked : arrivals) {
    if (std::optional<Rejection> rejection = Refuse(asked)) {
      if (rejection->reason == RejectReason::kQueueFull) rejection->wait_seconds = BacklogSeconds();
      out->rejections.push_back(std::move(*rejection));
      ++totals.requests_rejected;
      continue;
    }
    Request request;
    request.load = LoadOf(asked);
    request.asked = std::move(asked);
    request.choices.emplace_back();
    request.arrival = ++last_arrival;
    request.arrived = now;
    BeginSession(request);
    FindPlace(request);
    Enqueue(std::move(request));
    // At once, so that a burst fills the pool before it counts against the queue.
    if (!settled) {
      admission_due = true;
      AdmitWaiting();
    } else if (!turn_kept) {
      TryWaiting(waiting.size() - 1);
    }
  }
}

void Engine::State::Finish(Request& request, uint32_t choice, FinishReason reason, Status error, StepOutput* out) {
  uint32_t output_tokens = 0;
  RetentionReport retention;
  if (choice < request.choices.size()) {
    Choice& ended = request.choices[choice];
    if (ended.finished) return;
    ended.finished = true;
    if (request.open_choices() == 0) EndDecision(request, sched::ResumeEnd::kRequestEnded);
    admission_due = true;
    output_tokens = static_cast<uint32_t>(ended.output.size());
    if (request.is_check) kv.Free(std::exchange(request.checked, SequenceId(0)));
    if (!request.is_check && (reason == FinishReason::kStop || reason == FinishReason::kLength))
      output_lengths.Record(output_tokens);
    const uint64_t computed = ended.sequence.value == 0 ? 0 : kv.Length(ended.sequence);
    AbandonLoad(request);
    if (!request.is_check) NoteUnwritten(request, ended, computed);
    if (choice == 0) PrefetchForReturn(request, ended, computed);
    if (ended.sequence.value != 0) kv.Free(std::exchange(ended.sequence, SequenceId(0)));
    TrimPromise(request);
    const bool complete = reason == FinishReason::kStop || reason == FinishReason::kLength;
    if (complete && !request.is_check) retention = Retain(request, ended, computed);
    if (complete && choice == 0) KeepHistory(request, ended);
  }
  if (request.is_check) return;
  out->finishes.push_back({request.asked.id, choice, reason, std::move(error),
                           static_cast<uint32_t>(request.asked.prompt.size()), request.cached_tokens, output_tokens,
                           request.host_tokens, request.disk_tokens, retention, request.session});
}

void Engine::State::DropFinished() {
  std::erase_if(running, [&](const Request& request) {
    const bool ended = request.open_choices() == 0;
    if (ended && !request.is_check) ++totals.requests_finished;
    if (ended) LeavePlace(request);
    return ended;
  });
}

uint32_t Request::open_choices() const {
  return static_cast<uint32_t>(std::ranges::count(choices, false, &Choice::finished));
}

// Often enough to look at, seldom enough to cost nothing.
void Engine::State::RenewLedger() {
  constexpr Nanos kEvery = std::chrono::seconds(1);
  if (!running.empty() && now - ledger_at < kEvery) return;
  ledger_at = now;
  totals.ledger = kv.Ledger(executor.layout());
}

EngineStats Engine::State::Stats() const {
  EngineStats stats = totals;
  for (const Request& request : running) stats.running_sequences += request.open_choices();
  stats.waiting_requests = static_cast<uint32_t>(waiting.size());
  stats.awaiting_requests = static_cast<uint32_t>(std::ranges::count(waiting, true, &Request::awaits));
  stats.capped_requests = static_cast<uint32_t>(std::ranges::count(waiting, true, &Request::capped));
  stats.waiting_tenants = fair_share.waiting_tenants();
  stats.outside_requests = Outside();
  stats.taken_slots = TakenSlots();
  stats.taken_slots_limit = PlaceLimit().value_or(0);
  stats.limit_decreases = thrash.decreases();
  stats.refault_share = thrash.refault_share();
  stats.pressure = thrash.pressure();
  stats.total_slots = kv.geometry().slots;
  stats.free_slots = kv.free_slots();
  stats.idle_slots = kv.available_slots() - kv.free_slots();
  stats.promised_slots = static_cast<uint32_t>(budget.promised());
  stats.step_curve = step_cost.curve();
  stats.slots_evicted = kv.evicted_slots();
  stats.residency = kv.residency();
  stats.slots_expired = kv.expired_slots();
  stats.pinned_slots = pins.slots();
  AddSessionStats(&stats.sessions);
  if (store != nullptr) AddTierStats(&stats.tiers);
  AddHostStats(&stats.tiers);
  return stats;
}

}  // namespace cachalot::engine
