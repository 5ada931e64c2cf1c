// Which conversations take part while the KV of all of them does not fit the pool. A request whose conversation has no
// place waits outside, and is not tried; places are given in the order of arrival, the tenant with the fewest first.
#include <algorithm>
#include <vector>

#include "engine/engine_state.h"
#include "kv/block_chain.h"

namespace cachalot::engine {
namespace {

constexpr Nanos kLongestStay = std::chrono::minutes(5);  // in a place that others wait for
constexpr uint64_t kFarRefault = 4;                      // times the pool: what was lost so long ago is not thrash

// Whose tenant may run no more now takes nothing.
bool TakesPart(const Request& request) { return request.place.taken && !request.capped; }

}  // namespace

// A conversation is known by the whole blocks of its last prompt: its next one begins with them.
void Engine::State::FindPlace(Request& request) {
  const std::span<const TokenId> prompt = request.asked.prompt;
  const uint32_t block_tokens = kv.geometry().block_tokens;
  kv::BlockChain chain;
  std::optional<sched::Places::Key> known;
  uint64_t known_tokens = 0;
  for (size_t end = block_tokens; end <= prompt.size(); end += block_tokens) {
    chain = kv::ExtendChain(chain, prompt.subspan(end - block_tokens, block_tokens), request.asked.scope.salt);
    if (!places.Knows(chain.owned)) continue;
    known = chain.owned;
    known_tokens = end;
  }
  request.place = {.key = chain.owned, .slots = kv::SlotsHeld(kv.geometry(), prompt.size()), .since = now};
  if (known) {
    const sched::Places::Return back = places.Come(*known, now);
    request.place.since = back.since;
    request.place.resident_tokens = known_tokens;
    request.place.taken = MayGoOn(request, back.kept, known_tokens);
  }
  if (Outside() == 0 && HasPlaceFor(request)) request.place.taken = true;
}

// Whoever comes back finds its place again. But while too many have one, who would have to be loaded again anyhow gives
// way; and nobody stays for ever.
bool Engine::State::MayGoOn(const Request& request, bool kept, uint64_t known_tokens) {
  if (!PlaceLimit()) return true;
  if (Outside() > 0 && now - request.place.since > kLongestStay) return false;
  if (kept && HasPlaceFor(request)) return true;
  const bool resident = FindFor(request).tokens >= known_tokens / 2;
  return resident;
}

std::optional<uint64_t> Engine::State::PlaceLimit() const {
  return options.thrash_control ? thrash.limit() : std::nullopt;
}

bool Engine::State::HasPlaceFor(const Request& request) const {
  return !PlaceLimit() || TakenSlots() + request.place.slots <= *PlaceLimit();
}

uint64_t Engine::State::TakenSlots() const {
  uint64_t slots = places.kept_slots();
  for (const std::deque<Request>* requests : {&running, &waiting}) {
    for (const Request& request : *requests) slots += TakesPart(request) ? request.place.slots : 0;
  }
  return slots;
}

uint32_t Engine::State::Outside() const {
  return static_cast<uint32_t>(std::ranges::count_if(waiting, [](const Request& r) { return !r.place.taken; }));
}

// While too many have one: of those that wait and would have to load theirs anyhow, the last to come first.
void Engine::State::TakeBackPlaces() {
  if (!PlaceLimit() || waiting.empty()) return;
  uint64_t taken = TakenSlots();
  for (auto last = waiting.rbegin(); last != waiting.rend() && taken > *PlaceLimit(); ++last) {
    Request& request = *last;
    const uint64_t resident = request.place.resident_tokens;
    if (!TakesPart(request) || (resident > 0 && request.watch->tokens() >= resident / 2)) continue;
    request.place.taken = false;
    taken -= request.place.slots;
  }
}

// At least one when nothing else could run.
void Engine::State::GivePlaces() {
  places.Expire(now);
  TakeBackPlaces();
  uint32_t outside = Outside();
  if (outside == 0) return;
  std::vector<uint32_t> held;  // by tenant
  const auto held_by = [&](TenantId tenant) -> uint32_t& {
    if (tenant.value >= held.size()) held.resize(tenant.value + 1, 0);
    return held[tenant.value];
  };
  for (const std::deque<Request>* requests : {&running, &waiting}) {
    for (const Request& request : *requests) held_by(request.asked.tenant) += TakesPart(request);
  }
  bool can_run = !running.empty() || std::ranges::any_of(waiting, TakesPart);
  for (; outside > 0; --outside, can_run = true) {
    Request* next = nullptr;
    for (Request& request : waiting) {
      if (request.place.taken) continue;
      if (next == nullptr || held_by(request.asked.tenant) < held_by(next->asked.tenant)) next = &request;
    }
    if (next == nullptr || (can_run && !HasPlaceFor(*next))) return;
    next->place.taken = true;
    next->place.since = now;
    next->place.resident_tokens = 0;
    ++held_by(next->asked.tenant);
    admission_due = true;
  }
}

void Engine::State::LeavePlace(const Request& request) {
  if (!request.place.taken) return;
  ++since_observed.finished;
  since_observed.ran += now - request.place.started;
  const Choice& choice = request.choices.front();
  const uint64_t slots = kv::SlotsHeld(kv.geometry(), request.history_tokens(choice));
  since_observed.held_slots += slots;
  if (request.place.key != 0) places.Leave(request.place.key, now, request.place.since, slots);
}

// What of its history was lost because others needed the room; it is computed again, unless lower tiers have it.
void Engine::State::NoteLost(const Request& request, Choice& choice, const kv::AttachedPrefix& attached) const {
  const uint64_t preempted = choice.computed - std::min(choice.computed, attached.tokens);
  const bool near = attached.account.refault_distance <= kFarRefault * budget.total();
  const uint64_t lost = near && request.preemptions == 0 ? attached.account[TokenClass::kCapacity] : 0;
  choice.recomputes_to = attached.tokens + preempted + lost;
}

// Of the rows that ran, those that had run before.
void Engine::State::CountRepeats() {
  for (const sched::PlannedRows& p : plan) {
    const Choice& choice = running[candidates[p.index].request].choices[candidates[p.index].choice];
    if (choice.sequence.value == 0) continue;  // its KV was lost
    const uint64_t end = kv.Length(choice.sequence), begin = end - p.rows;
    const auto below = [&](uint64_t limit) { return std::min(end, limit) - std::min(begin, limit); };
    totals.tokens_recomputed += below(choice.computed);
    totals.refault_tokens += below(choice.recomputes_to);
  }
}

// How it stood since the last step.
void Engine::State::ObserveThrash() {
  sched::ThrashInput input = std::exchange(since_observed, {});
  input.now = now;
  input.computed_tokens = totals.tokens_computed - std::exchange(observed_computed, totals.tokens_computed);
  input.refault_tokens = totals.refault_tokens - std::exchange(observed_refaults, totals.refault_tokens);
  input.gap_seconds = places.gap_seconds();
  input.return_share = places.return_share();
  input.taken_slots = TakenSlots();
  input.outside = Outside();
  input.some_wait = std::ranges::any_of(waiting, [](const Request& r) { return !r.awaits && !r.capped; });
  input.all_wait = input.some_wait && std::ranges::all_of(running, [&](const Request& r) {
                     const Choice& first = r.choices.front();
                     return first.sequence.value != 0 && kv.Length(first.sequence) < first.recomputes_to;
                   });
  thrash.Observe(input);
}

}  // namespace cachalot::engine
