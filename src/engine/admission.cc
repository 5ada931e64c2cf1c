// Whether a waiting request may begin to run, with what of its KV that is there already.
#include "sched/admission.h"

#include <algorithm>
#include <utility>

#include "engine/decision_log.h"
#include "engine/engine_state.h"

namespace cachalot::engine {
namespace {

constexpr uint32_t kPreemptions = 3;  // of one request; then it comes back only with a guarantee, but for an optimist's

}  // namespace

uint32_t Engine::State::RunningSequences() const {
  uint32_t count = 0;
  for (const Request& request : running) count += request.sequences();
  return count;
}

std::span<const TokenId> Engine::State::HistoryOf(const Request& request, const Choice& choice) {
  if (choice.output.empty()) return request.asked.prompt;
  history.assign(request.asked.prompt.begin(), request.asked.prompt.end());
  history.insert(history.end(), choice.output.begin(), choice.output.end());
  return history;
}

// All but the last token, whose row gives the next one's logits; nothing where every row's are asked for.
uint64_t Engine::State::SkippableOf(const Request& request, const Choice& choice) const {
  const bool scored = request.asked.prompt_logprobs >= 0 && !request.forked;
  return scored ? 0 : request.history_tokens(choice) - 1;
}

kv::PromisedSlots Engine::State::DemandOf(const GenerateRequest& asked, uint32_t sequences) const {
  const uint64_t prompt = asked.prompt.size(), total = prompt + asked.max_tokens;
  return kv::SlotsToPromise(kv.geometry(), prompt, total, sequences, step_tokens_limit());
}

void Engine::State::SurveyRunning() {
  survey.sequences = 0;
  survey.any_expected = false;
  survey.promised = survey.largest = survey.held_slots = 0;
  survey.held.assign(std::max<size_t>(options.tenants.size(), 1), Load{});
  growth_views.clear();
  for (const Request& request : running) {
    survey.sequences += request.sequences();
    if (request.asked.tenant.value >= survey.held.size()) survey.held.resize(request.asked.tenant.value + 1);
    survey.held[request.asked.tenant.value] += request.load;
    survey.promised += request.demand.sliding + (request.guaranteed ? request.demand.full : 0);
    if (request.loading != nullptr) survey.promised += request.loading->windows.slots();
    if (request.guaranteed) continue;
    survey.any_expected = true;
    survey.largest = std::max(survey.largest, request.demand.full);
    growth_views.push_back(GrowthOf(request));
    for (const Choice& choice : request.choices) {
      if (choice.sequence.value == 0) continue;
      survey.held_slots +=
          kv::BlocksFor(kv.Length(choice.sequence), kv.geometry().block_tokens) * full_part.windows.size();
    }
  }
  for (const Prefetch& prefetch : up.prefetches) {
    if (prefetch.loading != nullptr) survey.promised += prefetch.most_slots;
  }
  survey.growth.SetBatch(growth_views);
}

kv::PrefixView Engine::State::FindFor(const Request& request) {
  const Choice& choice = *std::ranges::find(request.choices, false, &Choice::finished);
  return kv.Find(request.asked.scope, HistoryOf(request, choice), SkippableOf(request, choice));
}

// Gives the request a promise and its first sequence, or leaves it as it is. Most that find no room are told so by what
// they would need at the least, with all that is resident of them shared and in use; but one whose turn it is must know
// whether it awaits somebody. Prefetches give way: it takes over what is on its way up for it, and the room of others.
Admission Engine::State::TryAdmit(Request& request) {
  if (!request.place.taken) return Admission::kOutside;
  if (kv.IsPending(request.pending)) return Admission::kAwaits;
  const TenantId tenant = request.asked.tenant;
  const Load held = tenant.value < survey.held.size() ? survey.held[tenant.value] : Load{};
  if (sched::FirstExcess(request.load, held, TermsOf(tenant).tenant)) return Admission::kCapped;
  request.guaranteed =
      options.admission == "guaranteed" || (options.admission == "expected" && request.preemptions >= kPreemptions);
  const uint64_t resident_blocks = request.watch->tokens() / kv.geometry().block_tokens;
  const SharedSlots least{resident_blocks * full_part.windows.size(), 0};
  if (request.overtaken < kPatience && !Fits(request, least, up.prefetch_slots())) return Admission::kNoRoom;
  TakeBack(request.asked.scope, HistoryOf(request, request.first_open()));
  for (std::unique_ptr<Loading> taken_over;; SurveyRunning()) {
    const kv::PrefixView found = FindFor(request);
    const SharedSlots shared = SharedOf(found, taken_over.get());
    const bool awaits = taken_over == nullptr && found.awaited > found.tokens;
    Prefetch* const ahead = awaits ? up.PrefetchInto(found.pending.writer) : nullptr;
    request.pending = awaits && ahead == nullptr ? found.pending : kv::PendingBlock{};
    if (awaits && ahead == nullptr) return Admission::kAwaits;
    const uint64_t windows = taken_over == nullptr ? 0 : taken_over->windows.slots();
    const auto fits = [&](uint64_t freed) {
      return Fits(request, shared, freed) && FitsWithExpected(request, windows, freed);
    };
    if (!awaits && fits(0)) {
      Start(request, shared, std::move(taken_over));
      return Admission::kAdmitted;
    }
    if (fits(up.prefetch_slots())) {
      if (ahead != nullptr) taken_over = TakeOver(*ahead, request);
      if (ahead != nullptr || YieldLast()) continue;
    }
    if (taken_over == nullptr) return Admission::kNoRoom;
    DropLoad(*taken_over);  // it may fit without
    taken_over.reset();
  }
}

SharedSlots Engine::State::SharedOf(const kv::PrefixView& found, const Loading* taken_over) const {
  SharedSlots shared{found.full_slots, found.idle_full_slots};
  if (taken_over == nullptr) return shared;
  const uint64_t blocks = taken_over->stored.keys.size() - taken_over->meeting.low_block();
  shared.all += blocks * full_part.windows.size();
  return shared;
}

bool Engine::State::Fits(const Request& request, const SharedSlots& shared, uint64_t freed) const {
  const kv::PromisedSlots& demand = request.demand;
  const uint64_t growth = request.guaranteed ? demand.full - std::min(demand.full, shared.all)  //
                                             : ExpectedGrowth(request, shared);
  const uint64_t charge = demand.sliding + shared.idle + growth;
  const uint64_t taken = kv.full_slots_in_use() + budget.promised();
  return sched::FitsNow({.sequences = request.sequences(), .charge_slots = charge},
                        {.total_slots = budget.total(),
                         .taken_slots = taken - std::min(taken, freed),
                         .max_sequences = options.max_sequences,
                         .running_sequences = survey.sequences});
}

// Whether the oldest of those that may be preempted could still finish if all the others were, and with it all that
// have a guarantee, `more` slots included, once others have given up `freed`.
bool Engine::State::FitsWithExpected(const Request& request, uint64_t more, uint64_t freed) const {
  if (request.guaranteed && !survey.any_expected) return true;
  const uint64_t own = request.demand.sliding + (request.guaranteed ? request.demand.full : 0);
  const uint64_t promised = survey.promised - std::min(survey.promised, freed) + own + more;
  const uint64_t largest = std::max(survey.largest, request.guaranteed ? 0 : request.demand.full);
  return promised + largest <= budget.total() - pins.most_slots();
}

// Whether so many slots may be taken for no request.
bool Engine::State::FitsBeside(uint64_t slots) const {
  return !survey.any_expected || survey.promised + slots + survey.largest <= budget.total() - pins.most_slots();
}

// What it holds of full attention, as soon as its prompt is computed, and what it will likely take after that; an
// optimist thinks of nothing more.
sched::GrowthView Engine::State::GrowthOf(const Request& request) const {
  const bool grows = options.admission != "optimistic";
  const uint64_t block_tokens = kv.geometry().block_tokens, groups = full_part.windows.size();
  const uint64_t prompt = request.asked.prompt.size();
  sched::GrowthView view{.current = kv::BlocksFor(prompt, block_tokens) * groups};
  for (const Choice& choice : request.choices) {
    if (choice.finished) continue;
    const auto generated = static_cast<uint32_t>(choice.output.size());
    const uint64_t total = prompt + output_lengths.Predict(generated, request.asked.max_tokens);
    const uint64_t copies = request.forked ? 1 : request.asked.n;
    view.current += (kv::BlocksFor(prompt + generated, block_tokens) - kv::BlocksFor(prompt, block_tokens)) * groups;
    if (!grows) continue;
    view.remaining +=
        (kv::BlocksFor(total, block_tokens) - kv::BlocksFor(prompt + generated, block_tokens) + 1) * groups * copies;
  }
  return view;
}

// Slots of full attention that those without a guarantee will likely take beyond what they hold, this one included.
uint64_t Engine::State::ExpectedGrowth(const Request& request, const SharedSlots& shared) const {
  sched::GrowthView own = GrowthOf(request);
  const uint64_t own_full = request.demand.full - std::min(request.demand.full, shared.all);
  own.current -= std::min(own.current, request.demand.full - own_full);
  const uint64_t peak = survey.growth.With(own);
  const uint64_t growth = peak - std::min(peak, survey.held_slots);
  if (!survey.any_expected) return std::min(growth, own_full);
  return growth + static_cast<uint64_t>(options.admission_reserve * static_cast<double>(budget.total()));
}

void Engine::State::Start(Request& request, const SharedSlots& shared, std::unique_ptr<Loading> taken_over) {
  const kv::PromisedSlots& demand = request.demand;
  const uint64_t in_use = kv.full_slots_in_use();
  const uint64_t full = request.guaranteed ? demand.full - std::min(demand.full, shared.all) : 0;
  Result<kv::SlotPromise> promise = budget.Promise(full + demand.sliding, in_use);
  CACHALOT_CHECK(promise.ok());
  request.promise = std::move(promise).value();
  request.watch.reset();
  request.expected.reset();
  request.awaits = request.capped = false;
  request.place.started = now;
  Choice& choice = request.first_open();
  if (taken_over != nullptr) GoOnWith(*taken_over, request, choice);
  std::unique_ptr<Loading> loading = taken_over != nullptr ? std::move(taken_over) : PlanLoad(request, choice);
  Attach(request, choice, loading.get());
  const uint64_t after = kv.full_slots_in_use(), before = in_use + shared.idle;  // found ones are not in the promise
  NoteTaken(request, after - std::min(after, before));
  if (loading != nullptr) StartLoad(request, choice, std::move(loading));  // takes its slots out of the promise itself
  std::exchange(request.history, {});
  const uint64_t cached = kv.Length(choice.sequence);
  if (options.decision_log != nullptr) {
    options.decision_log->Admitted(request.asked.id, cached, request.promise.slots());
  }
  const uint64_t loads = request.loading == nullptr ? 0 : request.loading->tokens.size() - cached;
  fair_share.Charge(request.asked.tenant, request.history_tokens(choice) - cached - loads);
  if (request.forked) return;
  if (request.preemptions == 0) {  // else it found its own
    request.cached_tokens = static_cast<uint32_t>(cached);
    totals.prompt_tokens_cached += cached;
  }
  if (request.loading == nullptr) SampleHit(request, cached);
}

// What is loaded follows whole blocks; a load that was taken over goes on.
void Engine::State::Attach(Request& request, Choice& choice, Loading* loading) {
  choice.sequence = kv.Create(request.asked.scope, HintsOf(request.asked));
  if (loading != nullptr && loading->sequence.value != 0) {
    kv.MoveLoad(std::exchange(loading->sequence, choice.sequence), choice.sequence);
  }
  const kv::AttachedPrefix attached =
      kv.Attach(choice.sequence, HistoryOf(request, choice), SkippableOf(request, choice), loading != nullptr);
  if (request.preemptions == 0) totals.hits.Add(attached.account);
  NoteLost(request, choice, attached);
  if (attached.copies.empty()) return;
  ScrubFreed();
  last_copy = memory.CopyWithin(attached.copies);
}

// The other choices of a request that came back: they begin once the first has the prompt, which they then share.
void Engine::State::AttachParked() {
  for (Request& request : running) {
    if (!request.forked) continue;
    const auto leads = [&](const Choice& choice) {
      return choice.sequence.value != 0 && kv.Length(choice.sequence) < request.asked.prompt.size();
    };
    if (std::ranges::any_of(request.choices, leads)) continue;
    for (Choice& choice : request.choices) {
      if (choice.finished || choice.sequence.value != 0) continue;
      const uint64_t in_use = kv.full_slots_in_use();
      Attach(request, choice);
      NoteTaken(request, kv.full_slots_in_use() - in_use);
    }
  }
}

// It holds that many more slots of full attention.
void Engine::State::NoteTaken(Request& request, uint64_t full_slots) {
  if (!request.guaranteed) return;
  request.promise.ShrinkTo(request.promise.slots() - std::min(request.promise.slots(), full_slots));
}

// What a request with fewer open choices may still take at most.
void Engine::State::TrimPromise(Request& request) {
  if (request.open_choices() == 0) return request.promise.ShrinkTo(0);
  if (!request.forked || !request.guaranteed) return;
  const GenerateRequest& asked = request.asked;
  const uint64_t total = asked.prompt.size() + asked.max_tokens, block_tokens = kv.geometry().block_tokens;
  const uint64_t blocks = kv::BlocksFor(total, block_tokens);
  uint64_t full = 0;
  for (const Choice& choice : request.choices) {
    if (choice.finished) continue;
    const uint64_t held = choice.sequence.value == 0 ? 0 : kv::BlocksFor(kv.Length(choice.sequence), block_tokens);
    full += (blocks - held + 1) * full_part.windows.size();  // one more to leave a shared tail
  }
  const uint64_t sliding =
      kv::PeakSlotsForked(sliding_part, asked.prompt.size(), total, request.open_choices(), step_tokens_limit());
  request.promise.ShrinkTo(std::min(request.promise.slots(), full + sliding));
}

}  // namespace cachalot::engine
