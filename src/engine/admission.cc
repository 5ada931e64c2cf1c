// Which waiting requests begin to run, with what of their KV that is there already.
#include "engine/engine_state.h"

#include <algorithm>

#include "sched/admission.h"
#include "sched/waiting_order.h"

namespace cachalot::engine {
namespace {

constexpr uint32_t kPatience = 16;       // how often a request is overtaken before it is next
constexpr size_t kTriedAtOnce = 128;     // of those that have waited longest
constexpr uint32_t kPreemptions = 3;     // of one request; then it comes back only with a guarantee
constexpr uint64_t kWatermarkPart = 50;  // 1/50 of the pool is kept for growth that nobody expected

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

SlotDemand Engine::State::DemandOf(const Request& request, const kv::PrefixView& found) const {
  const GenerateRequest& asked = request.asked;
  const uint64_t prompt = asked.prompt.size(), total = prompt + asked.max_tokens;
  const uint64_t full = kv::PeakSlotsForked(full_part, prompt, total, request.sequences(), step_tokens_limit());
  const uint64_t sliding = kv::PeakSlotsForked(sliding_part, prompt, total, request.sequences(), step_tokens_limit());
  const uint64_t promise = full - std::min(full, found.full_slots) + sliding;
  return {full + sliding, full, sliding, promise, promise + found.idle_full_slots};
}

void Engine::State::AdmitWaiting() {
  if (!std::exchange(admission_due, false) || waiting.empty()) return;
  if (RunningSequences() >= options.max_sequences) return;
  std::vector<kv::PrefixView> found;
  std::vector<sched::WaitingView> views;
  const size_t tried = std::min(waiting.size(), kTriedAtOnce);
  for (size_t i = 0; i < tried; ++i) {
    found.push_back(FindFor(waiting[i]));
    views.push_back({found.back().tokens, waiting[i].overtaken});
  }
  std::vector<uint32_t> admitted;
  for (const uint32_t i : sched::OrderWaiting(views, kPatience)) {
    // Whoever was admitted changes what the next ones find.
    const Admission result = TryAdmit(waiting[i], admitted.empty() ? found[i] : FindFor(waiting[i]));
    waiting[i].awaits = result == Admission::kAwaits;
    if (result == Admission::kAdmitted) {
      running.push_back(std::move(waiting[i]));
      admitted.push_back(i);
    }
    if (result == Admission::kAwaits) admission_due = true;
    // When its turn has come, nobody passes any more.
    if (result == Admission::kNoRoom && waiting[i].overtaken >= kPatience) break;
  }
  if (admitted.empty()) return;
  std::ranges::sort(admitted);
  for (uint32_t i = 0; i < admitted.back(); ++i) {
    if (!std::ranges::binary_search(admitted, i)) ++waiting[i].overtaken;
  }
  for (auto i = admitted.rbegin(); i != admitted.rend(); ++i) waiting.erase(waiting.begin() + *i);
}

kv::PrefixView Engine::State::FindFor(Request& request) {
  const Choice& choice = request.first_open();
  return kv.Find(request.asked.scope, HistoryOf(request, choice), SkippableOf(request, choice));
}

// Gives the request a promise and its first sequence, or leaves it as it is.
Admission Engine::State::TryAdmit(Request& request, const kv::PrefixView& found) {
  if (found.awaited > found.tokens) return Admission::kAwaits;
  const SlotDemand demand = DemandOf(request, found);
  const uint64_t in_use = kv.full_slots_in_use();
  request.demand = demand;
  request.guaranteed = options.admission == "guaranteed" || request.preemptions >= kPreemptions;
  const uint64_t charge =
      request.guaranteed ? demand.charge : demand.sliding + found.idle_full_slots + ExpectedGrowth(request);
  const sched::CapacityView capacity{executor.context_tokens(), budget.total(), in_use + budget.promised(),
                                     options.max_sequences, RunningSequences()};
  const sched::CandidateView candidate{request.asked.prompt.size(), request.asked.max_tokens, request.sequences(),
                                       demand.peak, charge};
  if (sched::Admit(candidate, capacity) != sched::Verdict::kAdmit) return Admission::kNoRoom;
  if (!FitsWithExpected(request)) return Admission::kNoRoom;
  Result<kv::SlotPromise> promise = budget.Promise(request.guaranteed ? demand.promise : demand.sliding, in_use);
  CACHALOT_CHECK(promise.ok());
  request.promise = std::move(promise).value();
  Choice& choice = request.first_open();
  Attach(request, choice);
  NoteTaken(request, kv.full_slots_in_use() - in_use - found.idle_full_slots);  // found ones are not in the promise
  if (!request.forked) {
    request.cached_tokens = static_cast<uint32_t>(kv.Length(choice.sequence));
    totals.prompt_tokens_cached += request.cached_tokens;
    SampleHit(request, request.cached_tokens);
  }
  return Admission::kAdmitted;
}

// Whether the oldest of those that may be preempted could still finish if all the others were, and with it all that
// have a guarantee.
bool Engine::State::FitsWithExpected(const Request& request) const {
  uint64_t promised = 0, largest = 0;
  bool any_expected = false;
  const auto count = [&](const Request& r) {
    any_expected |= !r.guaranteed;
    promised += r.demand.sliding + (r.guaranteed ? r.demand.full : 0);
    largest = std::max(largest, r.guaranteed ? 0 : r.demand.full);
  };
  std::ranges::for_each(running, count);
  count(request);
  return !any_expected || promised + largest <= budget.total();
}

// What it holds of full attention, as soon as its prompt is computed, and what it will likely take after that.
sched::GrowthView Engine::State::GrowthOf(const Request& request) const {
  const uint64_t block_tokens = kv.geometry().block_tokens, groups = full_part.windows.size();
  const uint64_t prompt = request.asked.prompt.size();
  sched::GrowthView view{.current = kv::BlocksFor(prompt, block_tokens) * groups};
  for (const Choice& choice : request.choices) {
    if (choice.finished) continue;
    const auto generated = static_cast<uint32_t>(choice.output.size());
    const uint64_t total = prompt + output_lengths.Predict(generated, request.asked.max_tokens);
    const uint64_t copies = request.forked ? 1 : request.asked.n;
    view.current += (kv::BlocksFor(prompt + generated, block_tokens) - kv::BlocksFor(prompt, block_tokens)) * groups;
    view.remaining +=
        (kv::BlocksFor(total, block_tokens) - kv::BlocksFor(prompt + generated, block_tokens) + 1) * groups * copies;
  }
  return view;
}

// Slots of full attention that those without a guarantee will likely take beyond what they hold, this one included.
uint64_t Engine::State::ExpectedGrowth(const Request& request) const {
  std::vector<sched::GrowthView> batch;
  uint64_t held = 0;
  for (const Request& other : running) {
    if (other.guaranteed) continue;
    batch.push_back(GrowthOf(other));
    for (const Choice& choice : other.choices) {
      if (choice.sequence.value == 0) continue;
      held += kv::BlocksFor(kv.Length(choice.sequence), kv.geometry().block_tokens) * full_part.windows.size();
    }
  }
  const bool alone = batch.empty();
  sched::GrowthView own = GrowthOf(request);
  const uint64_t own_full = request.demand.promise - request.demand.sliding;
  own.current -= std::min(own.current, request.demand.full - own_full);  // what it shares
  batch.push_back(own);
  const uint64_t peak = sched::FuturePeak(batch);
  const uint64_t growth = peak - std::min(peak, held);
  return alone ? std::min(growth, own_full) : growth + budget.total() / kWatermarkPart;
}

void Engine::State::Attach(Request& request, Choice& choice) {
  choice.sequence = kv.Create(request.asked.scope);
  const kv::AttachedPrefix attached =
      kv.Attach(choice.sequence, HistoryOf(request, choice), SkippableOf(request, choice));
  totals.tokens_recomputed += choice.computed - std::min(choice.computed, attached.tokens);
  if (attached.copies.empty()) return;
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
