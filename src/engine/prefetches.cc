// KV that comes up before a request asks for it.
#include "engine/prefetches.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/engine_state.h"
#include "kv/identity.h"
#include "kv/load_plan.h"
#include "sched/load_or_recompute.h"
#include "sched/promotion.h"

namespace cachalot::engine {
namespace {

constexpr Nanos kLongestWait = std::chrono::seconds(30);  // for room, after the client was to be back
constexpr Nanos kRetry = std::chrono::milliseconds(20), kLongestRetry = std::chrono::milliseconds(640);
constexpr Nanos kMargin = std::chrono::milliseconds(200);
constexpr double kSlack = 2;  // times what its load is thought to take: so much earlier it begins, and then it is late
constexpr double kMostSeconds = 600;
constexpr size_t kMostPrefetches = 4096;
constexpr size_t kMostAhead = 64;  // of waiting requests, at a time

}  // namespace

// `due`: when its client is thought to be back; its load begins shortly before.
PrefetchId Engine::State::BeginPrefetch(const PrefixScope& scope, std::span<const TokenId> tokens, Nanos due,
                                        PrefetchFor whom) {
  const PrefetchId id(++up.last_prefetch);
  Prefetch prefetch{.id = id, .scope = scope, .give_up = due + kLongestWait, .whom = whom};
  prefetch.tokens.assign(tokens.begin(), tokens.end());
  if (!HasLowerTiers() || up.prefetches.size() >= kMostPrefetches) {
    EndPrefetch(prefetch, false);
    return id;
  }
  const uint64_t bytes = kv::SlotsHeld(kv.geometry(), tokens.size()) * memory.slot_bytes();
  const TierId slowest = store != nullptr ? TierId::kDisk : TierId::kHost;
  const Nanos ahead =
      kMargin + FromSeconds(std::min(kSlack * TransferSeconds(RateOf(slowest), bytes, 0), kMostSeconds));
  prefetch.start = std::max(now, due - std::min(due, ahead));
  up.prefetches.push_back(std::move(prefetch));
  return id;
}

// Begins those whose time has come, as far as there is room, and ends those that are done.
void Engine::State::AdvancePrefetches() {
  PrefetchAhead();
  for (size_t i = 0; i < up.prefetches.size();) {
    if (AdvancePrefetch(up.prefetches[i])) {
      up.prefetches.erase(up.prefetches.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

// True: it is over. Nobody computes what does not come.
bool Engine::State::AdvancePrefetch(Prefetch& prefetch) {
  if (prefetch.loading == nullptr) {
    if (now < prefetch.start) return false;
    if (!prefetch.yielded || now < prefetch.give_up) return StartPrefetch(prefetch);
    EndPrefetch(prefetch, false);
    return true;
  }
  const Loading& loading = *prefetch.loading;
  const bool whole = loading.meeting.done();
  const bool moves = std::ranges::any_of(loading.parts, &LoadPart::begun);  // else nothing tells that it is late
  if (!whole && now < loading.front_at && (moves || now < loading.deadline)) return false;
  if (whole) prefetch.loaded_tokens = EndLoad(*prefetch.loading).all();
  EndPrefetch(prefetch, whole);
  return true;
}

// True: it is over already.
bool Engine::State::StartPrefetch(Prefetch& prefetch) {
  const uint32_t block_tokens = kv.geometry().block_tokens;
  const std::span<const TokenId> tokens = prefetch.tokens;
  TakeBack(prefetch.scope, tokens);
  const kv::PrefixView resident = kv.Find(prefetch.scope, tokens, tokens.size());
  if (resident.awaited > resident.tokens) return GiveUp(prefetch);  // somebody brings it up
  const uint64_t whole = kv.FindWhole(prefetch.scope, tokens, tokens.size());
  StoredBlocks stored = FindStored(prefetch.scope, tokens, whole / block_tokens);
  if (stored.end <= resident.tokens || resident.tokens - whole >= block_tokens) {
    EndPrefetch(prefetch, true);
    return true;
  }
  const uint64_t full = (stored.keys.size() - stored.first) * full_part.windows.size() + resident.idle_full_slots;
  const uint64_t windows = kv::SlotsHeld(sliding_part, stored.end);
  Result<kv::SlotPromise> promise = budget.Promise(full + windows, kv.full_slots_in_use());
  SurveyRunning();
  prefetch.most_slots = full + 2 * windows;
  prefetch.own_slots = prefetch.most_slots - resident.idle_full_slots;
  if (!promise.ok() || !FitsBeside(prefetch.most_slots)) return GiveUp(prefetch);
  const sched::Decision decision = Decide(nullptr, tokens.size(), stored);
  if (prefetch.whom == PrefetchFor::kQueue && !sched::LoadPays(decision)) {
    EndPrefetch(prefetch, false);
    return true;
  }
  prefetch.promise = std::move(promise).value();
  Nanos until = Nanos::max();  // the first of them ends
  for (const Digest& key : std::span(stored.keys).subspan(stored.first)) {
    if (store != nullptr) until = std::min(until, store->DeadlineOf(key));
    if (host != nullptr) until = std::min(until, host->DeadlineOf(key));
  }
  prefetch.sequence = kv.Create(prefetch.scope, {}, until);
  kv.Attach(prefetch.sequence, tokens.first(stored.end), stored.end, true);
  prefetch.promise.ShrinkTo(full + windows - resident.idle_full_slots);
  prefetch.loading = MakeLoading(tokens, std::move(stored));
  Schedule(*prefetch.loading, decision, false);
  const double load_seconds = decision.estimates[static_cast<size_t>(sched::ResumeWay::kLoad)]->load_seconds;
  const Nanos late = now + FromSeconds(std::min(kSlack * load_seconds, kMostSeconds));
  prefetch.loading->deadline = std::max(prefetch.loading->deadline, late);
  prefetch.loading->front_at = Nanos::max();
  prefetch.loading->priority = tier::TransferPriority::kPrefetch;
  const uint64_t bytes = tier::BytesOf(prefetch.loading->stored.groups(), memory.slot_bytes());
  prefetch.loading->part_bytes = std::min(prefetch.loading->part_bytes, bytes / kPartsToMeet);  // a front may come
  if (!BeginLoad(*prefetch.loading, prefetch.sequence, windows)) {
    StopPrefetch(prefetch);
    return GiveUp(prefetch);
  }
  PumpLoad(*prefetch.loading, &prefetch.promise);
  return false;
}

// It is tried again, for a while.
bool Engine::State::GiveUp(Prefetch& prefetch) {
  prefetch.retry = std::clamp(2 * prefetch.retry, kRetry, kLongestRetry);
  prefetch.start = now + prefetch.retry;
  if (now < prefetch.give_up) return false;
  EndPrefetch(prefetch, false);
  return true;
}

// Requests come first; then it is tried again, for a while.
void Engine::State::Yield(Prefetch& prefetch) {
  StopPrefetch(prefetch);
  prefetch.yielded = true;
  prefetch.start = now + kRetry;
}

// The last one that loads. False: there is none.
bool Engine::State::YieldLast() {
  const auto loads = [](const Prefetch& prefetch) { return prefetch.loading != nullptr; };
  const auto last = std::find_if(up.prefetches.rbegin(), up.prefetches.rend(), loads);
  if (last == up.prefetches.rend()) return false;
  Yield(*last);
  return true;
}

// What is on its way up for a request that is to begin now; null: it does better without. The prefetch looks again
// later, unless it was for such a request.
std::unique_ptr<Loading> Engine::State::TakeOver(Prefetch& prefetch, Request& request) {
  const Choice& choice = request.first_open();
  const std::span<const TokenId> tokens = HistoryOf(request, choice);
  const uint32_t block_tokens = kv.geometry().block_tokens;
  const uint64_t limit = SkippableOf(request, choice);
  const Loading& loading = *prefetch.loading;
  const uint64_t end = loading.tokens.size();
  const bool serves = prefetch.scope == request.asked.scope && !request.load_failed && end <= limit &&
                      std::ranges::equal(loading.tokens, tokens.first(end)) &&
                      kv.FindWhole(prefetch.scope, tokens, limit) == loading.stored.first * block_tokens;
  std::unique_ptr<Loading> taken;
  if (serves) {
    sched::Decision decision = Decide(&request, tokens.size(), loading.stored, &loading.meeting);
    if (decision.way != sched::ResumeWay::kRecompute && decision.chosen().end_token == end) {
      taken = std::move(prefetch.loading);
      taken->decision = std::move(decision);
      taken->priority = tier::TransferPriority::kPromotion;
      for (const LoadPart& part : taken->parts) {
        if (part.transfer) store->Raise(*part.transfer);
      }
      prefetch.sequence = SequenceId(0);
      if (prefetch.whom == PrefetchFor::kQueue) prefetch.give_up = now;
    }
  }
  Yield(prefetch);
  return taken;
}

// A request that begins goes on with the load that it took over, as was decided then: about it as about one of its own.
void Engine::State::GoOnWith(Loading& loading, Request& request, const Choice& choice) {
  const sched::Decision decision = *std::exchange(loading.decision, std::nullopt);
  const std::span<const TokenId> skippable = HistoryOf(request, choice).first(SkippableOf(request, choice));
  down.returns.Seen(kv::BlockKeys(identity, request.asked.scope, kv.geometry().block_tokens, skippable));
  NoteDecision(request, decision);
  Schedule(loading, decision, decision.way == sched::ResumeWay::kBoth);
}

// It holds nothing any more.
void Engine::State::StopPrefetch(Prefetch& prefetch) {
  if (prefetch.loading != nullptr) EndTransfers(*prefetch.loading);
  prefetch.loading.reset();
  if (prefetch.sequence.value != 0) kv.Free(std::exchange(prefetch.sequence, SequenceId(0)));
  prefetch.promise.ShrinkTo(0);
}

void Engine::State::EndPrefetch(Prefetch& prefetch, bool whole) {
  StopPrefetch(prefetch);
  admission_due = true;
  totals.tiers.prefetched_tokens += prefetch.loaded_tokens;
  if (prefetch.whom != PrefetchFor::kCommand) return;
  const uint64_t tokens = kv.Find(prefetch.scope, prefetch.tokens, prefetch.tokens.size()).tokens;
  up.ended_prefetches.push_back({prefetch.id, tokens, prefetch.loaded_tokens, whole});
}

// Of requests that wait, in the order of their arrival: what lower tiers have of the next ones stays there, and comes
// up where it fits what nobody uses now.
void Engine::State::PrefetchAhead() {
  if (!HasLowerTiers() || waiting.empty()) return;
  std::vector<uint64_t> queued;
  for (const Request& request : waiting) {
    if (queued.size() == kMostAhead) break;
    queued.push_back(kv::SlotsHeld(kv.geometry(), request.asked.prompt.size()) * memory.slot_bytes());
  }
  const uint64_t hot = kv.available_slots() * memory.slot_bytes();
  const uint64_t below =
      host == nullptr ? std::numeric_limits<uint64_t>::max() : host->cells() / 2 * memory.slot_bytes();
  const uint64_t comes_up = sched::LookAheadOf(queued, hot), stays = sched::LookAheadOf(queued, below);
  for (uint64_t i = 0; i < std::max(comes_up, stays); ++i) {
    Request& request = waiting[i];
    const bool expects = i < stays && !request.expected, fetches = i < comes_up && !request.fetched_ahead;
    if (request.awaits || (!expects && !fetches)) continue;
    const Choice& choice = request.first_open();
    const std::span<const TokenId> tokens = HistoryOf(request, choice).first(SkippableOf(request, choice));
    if (expects) request.expected = Expect(request.asked.scope, tokens);
    if (fetches) BeginPrefetch(request.asked.scope, tokens, now, PrefetchFor::kQueue);
    request.fetched_ahead |= fetches;
  }
}

// What is hot of these tokens, and what lower tiers have after it.
ExpectedBlocks::Hold Engine::State::Expect(const PrefixScope& scope, std::span<const TokenId> tokens) {
  const uint64_t hot = kv.FindWhole(scope, tokens, tokens.size()) / kv.geometry().block_tokens;
  const std::vector<Digest> keys = FindStored(scope, tokens, hot).keys;
  if (store != nullptr) store->Touch(keys);
  return up.expected.Take(keys);
}

// A client that said when it will be back finds its KV there.
void Engine::State::PrefetchForReturn(const Request& request, const Choice& choice, uint64_t computed) {
  const ReturnHint& hint = request.asked.returns;
  if (!hint.returns || !hint.in || computed == 0) return;
  constexpr Nanos kLongest = std::chrono::hours(24);
  const Nanos due = now + std::clamp(*hint.in, Nanos(0), kLongest);
  BeginPrefetch(request.asked.scope, HistoryOf(request, choice).first(computed), due, PrefetchFor::kQueue);
}

std::optional<Nanos> Engine::State::NextPrefetch() const {
  std::optional<Nanos> due;
  for (const Prefetch& prefetch : up.prefetches) {
    const Nanos next = prefetch.loading == nullptr ? prefetch.start : prefetch.loading->deadline;
    if (prefetch.loading == nullptr || next > now) due = due ? std::min(*due, next) : next;
  }
  if (!up.ended_prefetches.empty()) due = now;
  return due;
}

}  // namespace cachalot::engine
