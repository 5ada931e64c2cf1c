// KV on its way up: what a request gets from lower tiers instead of computing it.
#include <algorithm>

#include <fmt/format.h>

#include "base/log.h"
#include "engine/engine_state.h"
#include "kv/identity.h"
#include "kv/load_plan.h"
#include "sched/load_or_recompute.h"
#include "tier/kv_store.h"

namespace cachalot::engine {
namespace {

// How long a load may take before computing begins: as long as that would take, and a little longer.
Nanos PatienceFor(const std::optional<sched::ResumeEstimate>& recompute) {
  constexpr double kLeastSeconds = 0.25, kMostSeconds = 30, kShare = 1.2;
  const double seconds = recompute ? kShare * recompute->ttft_seconds : kMostSeconds;
  return Nanos(static_cast<Nanos::rep>(std::clamp(seconds, kLeastSeconds, kMostSeconds) * 1e9));
}

}  // namespace

// Leading blocks of `groups` that one run takes: as many as fit, at least one.
uint64_t Engine::State::BlocksOfRun(std::span<const uint32_t> groups) const {
  uint64_t blocks = 1;
  while (blocks < groups.size() && tier::BytesOf(groups.first(blocks + 1), memory.slot_bytes()) <= store->run_bytes()) {
    ++blocks;
  }
  return blocks;
}

tier::KvRun Engine::State::RunOf(std::span<const TokenId> tokens, std::span<const Digest> keys, uint64_t first,
                                 std::span<const uint32_t> groups) const {
  const uint32_t block_tokens = kv.geometry().block_tokens;
  tier::KvRun run{.identity = identity, .first_position = first * block_tokens};
  if (first > 0) run.parent = keys[first - 1];
  for (size_t i = 0; i < groups.size(); ++i) run.blocks.push_back({keys[first + i], block_tokens, groups[i]});
  const std::span<const TokenId> own = tokens.subspan(first * block_tokens, groups.size() * block_tokens);
  run.tokens.assign(own.begin(), own.end());
  return run;
}

// What lower tiers have of the history beyond what is resident of it, if getting it from there is sooner than computing
// it. The sequence then begins with whole blocks; as many as it would without, which admission has counted.
std::unique_ptr<Loading> Engine::State::PlanLoad(const Request& request, const Choice& choice) {
  if (store == nullptr || !options.prefix_cache || request.load_failed) return nullptr;
  const uint64_t block_tokens = kv.geometry().block_tokens, limit = SkippableOf(request, choice);
  const std::span<const TokenId> tokens = HistoryOf(request, choice);
  const uint64_t resident = kv.Find(request.asked.scope, tokens, limit).tokens;
  const uint64_t whole = resident % block_tokens == 0 ? resident : kv.FindWhole(request.asked.scope, tokens, limit);
  const uint64_t first = whole / block_tokens;
  const uint64_t blocks = limit / block_tokens;
  if (resident / block_tokens != first || blocks <= first) return nullptr;

  auto loading = std::make_unique<Loading>();
  loading->first = first;
  loading->keys =
      kv::BlockKeys(identity, request.asked.scope, kv.geometry().block_tokens, tokens.first(blocks * block_tokens));
  loading->groups = store->Match(identity, std::span(loading->keys).subspan(first));
  const uint64_t end = kv::LoadableTokens(kv.geometry(), first, loading->groups);
  if (end <= resident) return nullptr;
  loading->groups.resize(end / block_tokens - first);
  const sched::Decision decision =
      WayOf(tokens.size(), whole, end, tier::BytesOf(loading->groups, memory.slot_bytes()));
  const auto& load = decision.estimates[static_cast<size_t>(sched::ResumeWay::kLoad)];
  const auto& recompute = decision.estimates[static_cast<size_t>(sched::ResumeWay::kRecompute)];
  if (!load || (recompute && recompute->cost_seconds <= load->cost_seconds)) return nullptr;
  loading->deadline = now + PatienceFor(recompute);
  return loading;
}

void Engine::State::BeginLoad(Request& request, Choice& choice, std::unique_ptr<Loading> loading) {
  const uint64_t block_tokens = kv.geometry().block_tokens;
  const std::span<const TokenId> tokens = HistoryOf(request, choice);
  const std::span<const TokenId> loaded =
      tokens.subspan(loading->first * block_tokens, loading->groups.size() * block_tokens);
  loading->cells = kv.BeginLoad(choice.sequence, loaded);
  if (loading->cells.empty()) return;
  std::ranges::stable_sort(loading->cells, {}, &kv::LoadCell::block);  // by group where the block is the same
  request.loading = std::move(loading);
  PumpLoad(request, tokens);
}

sched::Decision Engine::State::WayOf(uint64_t prompt, uint64_t resident, uint64_t end, uint64_t bytes) const {
  sched::ResumeView view{.prompt_tokens = prompt,
                         .hot_tokens = resident,
                         .block_tokens = kv.geometry().block_tokens,
                         .step_rows = step_tokens_limit(),
                         .running = RunningSequences()};
  view.spans.push_back({.tier = TierId::kDisk, .tokens = end - resident, .full_bytes = bytes});
  view.links[TierIndex(TierId::kDisk)] = {store->load_rate(now), store->queued_load_bytes()};
  return sched::ChooseResume(view, work_shape, step_cost);
}

// Starts as much of the load as may be under way.
void Engine::State::PumpLoad(Request& request, std::span<const TokenId> tokens) {
  Loading& loading = *request.loading;
  while (loading.started < loading.groups.size()) {
    const std::span<const uint32_t> left = std::span(loading.groups).subspan(loading.started);
    const std::span<const uint32_t> groups = left.first(BlocksOfRun(left));
    const Result<tier::TransferId> id =
        store->Load(RunOf(tokens, loading.keys, loading.first + loading.started, groups),
                    tier::BytesOf(groups, memory.slot_bytes()), loading.deadline);
    if (!id.ok()) return;
    loading.under_way.push_back({*id, loading.started, groups.size()});
    loading.started += groups.size();
  }
}

void Engine::State::PollStore() {
  if (store == nullptr) return;
  NoteStoreHealth();
  for (tier::KvStore::Ended& ended : store->Poll(now)) {
    store_is_full = false;
    if (!ended.load) continue;
    for (size_t i = 0; i < running.size(); ++i) {
      if (running[i].loading == nullptr) continue;
      std::vector<Loading::Part>& parts = running[i].loading->under_way;
      const auto part = std::ranges::find(parts, ended.id, &Loading::Part::id);
      if (part == parts.end()) continue;
      const Loading::Part arrived = *part;
      parts.erase(part);
      TakeLoaded(static_cast<uint32_t>(i), arrived, ended);
      break;
    }
  }
  for (size_t i = running.size(); i > 0; --i) {
    Request& request = running[i - 1];
    if (request.loading == nullptr) continue;
    PumpLoad(request, HistoryOf(request, request.first_open()));
    const bool started = !request.loading->under_way.empty();
    if (!started && now >= request.loading->deadline) FailLoad(static_cast<uint32_t>(i - 1));
  }
}

void Engine::State::NoteStoreHealth() {
  const Status& health = store->stats().health;
  if (health.ok() == store_was_well) return;
  store_was_well = health.ok();
  if (store_was_well) {
    LogInfo("the disk tier takes writes again");
  } else {
    LogWarning(fmt::format("the disk tier takes no writes for the time being; requests go on: {}", health.message()));
  }
}

void Engine::State::TakeLoaded(uint32_t index, const Loading::Part& part, const tier::KvStore::Ended& ended) {
  Request& request = running[index];
  Loading& loading = *request.loading;
  if (!ended.status.ok()) return FailLoad(index);
  CopyIn(loading, part, ended.bytes.bytes());
  loading.arrived += part.blocks;
  if (loading.arrived < loading.groups.size()) return;
  const Choice& choice = request.first_open();
  const uint64_t before = kv.Length(choice.sequence);
  kv.EndLoad(choice.sequence);
  const uint64_t length = kv.Length(choice.sequence);
  request.loading.reset();
  totals.tiers.loaded_tokens += length - before;
  if (request.preemptions == 0 && !request.forked) {
    request.cached_tokens = static_cast<uint32_t>(length);
    totals.prompt_tokens_cached += length - before;
    SampleHit(request, length);
  }
}

// What its sequence will see of the part's blocks goes to its slots.
void Engine::State::CopyIn(const Loading& loading, const Loading::Part& part, std::span<const std::byte> bytes) {
  std::optional<exec::CopyTicket> last;
  auto cell = std::ranges::lower_bound(loading.cells, static_cast<uint32_t>(loading.first + part.first), {},
                                       &kv::LoadCell::block);
  for (uint64_t i = part.first; i < part.first + part.blocks; ++i) {
    for (uint32_t group = 0; group < kv.geometry().windows.size(); ++group) {
      if ((loading.groups[i] >> group & 1) == 0) continue;
      const std::span<const std::byte> slot = bytes.first(memory.slot_bytes());
      bytes = bytes.subspan(memory.slot_bytes());
      if (cell == loading.cells.end() || cell->block != loading.first + i || cell->group != group) continue;
      last = memory.CopyIn(slot, cell->slot);
      ++cell;
    }
  }
  if (last) memory.Wait(*last);  // copies are done in the order given
}

// The request waits again, in its old place, and computes next time.
void Engine::State::FailLoad(uint32_t index) {
  running[index].load_failed = true;
  ++totals.tiers.failed_loads;
  Requeue(index);
}

// Nothing of it comes to its slots any more.
void Engine::State::AbandonLoad(Request& request) {
  if (request.loading == nullptr) return;
  for (const Loading::Part& part : request.loading->under_way) store->Cancel(part.id);
  request.loading.reset();
}

uint64_t Engine::State::StoredTokens(const PrefixScope& scope, std::span<const TokenId> tokens) const {
  if (store == nullptr || !options.prefix_cache) return 0;
  const std::vector<Digest> keys = kv::BlockKeys(identity, scope, kv.geometry().block_tokens, tokens);
  return kv::LoadableTokens(kv.geometry(), 0, store->Match(identity, keys));
}

// Waits for the disk: what it says holds over restarts.
Status Engine::State::ClearStore() {
  if (store == nullptr) return OkStatus();
  unwritten.clear();
  return store->Clear();
}

void Engine::State::AddTierStats(TierStats* stats) const {
  const tier::KvStoreStats& s = store->stats();
  stats->failed_stores = s.failed_stores;
  stats->loaded_bytes = s.loaded_bytes;
  stats->stored_bytes = s.stored_bytes;
  stats->blocks = s.disk.live_blocks;
  stats->live_bytes = s.disk.live_bytes;
  stats->occupied_bytes = s.disk.occupied_bytes;
  stats->degraded = !s.health.ok();
}

std::optional<Nanos> Engine::State::NextDue() const {
  std::optional<Nanos> due = NextRetentionEnd();
  if (store == nullptr) return due;
  const auto sooner = [&](Nanos moment) { due = due ? std::min(*due, moment) : moment; };
  if (!unwritten.empty() && !store_is_full) sooner(now);
  if (const std::optional<Nanos> wake = store->WakeAt()) sooner(*wake);
  for (const Request& request : running) {
    if (request.loading != nullptr) sooner(request.loading->deadline);
  }
  return due;
}

}  // namespace cachalot::engine
