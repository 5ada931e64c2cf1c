// KV on its way up: what a request gets from lower tiers instead of computing it.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/log.h"
#include "engine/engine_state.h"
#include "kv/identity.h"
#include "kv/load_plan.h"
#include "sched/load_or_recompute.h"
#include "tier/kv_store.h"

namespace cachalot::engine {
namespace {

// After which a transfer is late: as long as computing would take, and a little longer.
Nanos PatienceFor(const std::optional<sched::ResumeEstimate>& recompute) {
  constexpr double kLeastSeconds = 0.25, kMostSeconds = 600, kShare = 1.2;
  const double seconds = recompute ? kShare * recompute->ttft_seconds : kMostSeconds;
  return FromSeconds(std::clamp(seconds, kLeastSeconds, kMostSeconds));
}

// A load that is awaited may take that much longer than was thought, or a step, before computing begins all the same.
constexpr double kGrace = 2;

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
  tokens = tokens.subspan(first * block_tokens);
  tokens = tokens.first(std::min<uint64_t>(tokens.size(), groups.size() * block_tokens));
  run.tokens.assign(tokens.begin(), tokens.end());
  for (size_t i = 0; i < groups.size(); ++i) {
    const uint64_t left = tokens.size() - i * block_tokens;  // the last may be short
    run.blocks.push_back({keys[first + i], static_cast<uint32_t>(std::min<uint64_t>(block_tokens, left)), groups[i]});
  }
  return run;
}

bool Engine::State::HasLowerTiers() const { return options.prefix_cache && (store != nullptr || host != nullptr); }

TierRate Engine::State::RateOf(TierId tier) const { return tier == TierId::kHost ? HostRate() : store->load_rate(now); }

// Appends the leading blocks of a chain that lower tiers have.
bool Engine::State::AppendStored(const Digest& key, StoredBlocks* stored) const {
  const uint32_t on_disk = store == nullptr ? 0 : store->GroupsOf(identity, key);
  const uint32_t in_host = host == nullptr ? 0 : host->GroupsOf(key);
  if ((on_disk | in_host) == 0) return false;
  stored->keys.push_back(key);
  stored->in_host.push_back(in_host);
  stored->on_disk.push_back(on_disk);
  return true;
}

// What lower tiers have of these tokens beyond their first blocks, whose windows a sequence holds: as far as it could
// go on from it. Where whole blocks end, the longest one that was sealed short.
StoredBlocks Engine::State::FindStored(const PrefixScope& scope, std::span<const TokenId> tokens,
                                       uint64_t first) const {
  const uint32_t block_tokens = kv.geometry().block_tokens;
  StoredBlocks stored{.first = first};
  if (tokens.size() / block_tokens < first) return stored;
  kv::ChainEnd before;
  for (uint64_t block = 0; block < tokens.size() / block_tokens; ++block) {  // keys cost: none beyond what is there
    const CacheSalt salt = SaltAt(scope, (block + 1) * block_tokens);
    const kv::ChainEnd next =
        kv::NextInChain(identity, before, salt, tokens.subspan(block * block_tokens, block_tokens));
    if (block < first) {
      stored.keys.push_back(next.key);
    } else if (!AppendStored(next.key, &stored)) {
      break;
    }
    before = next;
  }
  const uint64_t whole = stored.keys.size() * block_tokens;
  uint32_t last_tokens = block_tokens;
  const CacheSalt salt = SaltAt(scope, whole + block_tokens);
  for (uint64_t tail = std::min<uint64_t>(block_tokens - 1, tokens.size() - whole); tail > 0; --tail) {
    if (!AppendStored(kv::NextInChain(identity, before, salt, tokens.subspan(whole, tail)).key, &stored)) continue;
    last_tokens = static_cast<uint32_t>(tail);
    break;
  }
  stored.CutTo(kv::LoadableTokens(kv.geometry(), first, stored.groups(), last_tokens), kv.geometry());
  return stored;
}

std::vector<uint32_t> StoredBlocks::groups() const {
  std::vector<uint32_t> groups(in_host.size());
  std::ranges::transform(in_host, on_disk, groups.begin(), std::bit_or());
  return groups;
}

void StoredBlocks::CutTo(uint64_t tokens, const kv::KvGeometry& geometry) {
  end = tokens;
  const uint64_t blocks = std::max(kv::BlocksFor(tokens, geometry.block_tokens), first);
  keys.resize(blocks);
  in_host.resize(blocks - first);
  on_disk.resize(blocks - first);
  tiers.assign(blocks - first, TierId::kHost);
  for (uint32_t group = 0; group < geometry.windows.size(); ++group) {
    const uint64_t read = kv::FirstBlockKept(geometry.windows[group], tokens, geometry.block_tokens);
    for (uint64_t block = std::max(read, first); block < blocks; ++block) {
      if ((in_host[block - first] >> group & 1) == 0) tiers[block - first] = TierId::kDisk;
    }
  }
}

// Leading blocks of one tier after the other. Those that have come up already, if they meet a front, cost nothing.
std::vector<sched::TierSpan> Engine::State::SpansOf(const StoredBlocks& stored, const sched::Meeting* meeting) const {
  const kv::KvGeometry& geometry = kv.geometry();
  const std::vector<uint32_t> all = stored.groups();
  std::vector<sched::TierSpan> spans;
  uint64_t begin = stored.first;  // of the span
  for (uint64_t block = begin; block < stored.keys.size(); ++block) {
    const uint64_t i = block - stored.first;
    if (spans.empty() || spans.back().tier != stored.tiers[i]) {
      spans.push_back({.tier = stored.tiers[i]});
      begin = block;
    }
    sched::TierSpan& span = spans.back();
    const uint64_t end = std::min((block + 1) * geometry.block_tokens, stored.end);
    const bool is_up = meeting != nullptr && meeting->FateOf(block) == sched::BlockFate::kLoaded;
    for (uint32_t group = 0; group < geometry.windows.size(); ++group) {
      if (is_up || (stored.on(span.tier)[i] >> group & 1) == 0) continue;
      (geometry.windows[group] == 0 ? span.full_bytes : span.window_bytes) += memory.slot_bytes();
    }
    span.tokens = end - begin * geometry.block_tokens;
    const std::span<const uint32_t> groups = std::span(all).first(i + 1);
    const auto last_tokens = static_cast<uint32_t>(end - block * geometry.block_tokens);
    span.resumable = kv::LoadableTokens(geometry, stored.first, groups, last_tokens) == end;
  }
  return spans;
}

// Without a request: for a prefetch, which comes after all of theirs. `meeting`: of what is on its way up already.
sched::Decision Engine::State::Decide(const Request* request, uint64_t tokens, const StoredBlocks& stored,
                                      const sched::Meeting* meeting) const {
  using enum tier::TransferPriority;
  const tier::TransferPriority priority = request == nullptr ? kPrefetch : kPromotion;
  sched::ResumeView view{.prompt_tokens = tokens,
                         .hot_tokens = stored.first * kv.geometry().block_tokens,
                         .spans = SpansOf(stored, meeting),
                         .block_tokens = kv.geometry().block_tokens,
                         .step_rows = step_tokens_limit(),
                         .running = RunningSequences()};
  cost::StepWork decoding;
  for (const Request& other : running) {
    for (const Choice& choice : other.choices) {
      if (other.forked && choice.sequence.value != 0) decoding += work_shape.Rows(kv.Length(choice.sequence), 1, 1);
    }
  }
  view.running_seconds = step_cost.Added(decoding);
  const auto link = [&](TierId tier) { return sched::LinkView{RateOf(tier), QueuedBytes(tier, priority)}; };
  if (store != nullptr) view.links[TierIndex(TierId::kDisk)] = link(TierId::kDisk);
  if (host != nullptr) view.links[TierIndex(TierId::kHost)] = link(TierId::kHost);
  if (options.ttft_target > 0 && request != nullptr) {
    view.ttft_target_seconds = std::max(options.ttft_target - ToSeconds(now - request->arrived), 0.0);
  }
  return sched::ChooseResume(view, work_shape, step_cost);
}

// That is to come up before what begins now with that priority.
uint64_t Engine::State::QueuedBytes(TierId tier, tier::TransferPriority priority) const {
  uint64_t bytes = 0;
  const auto add = [&](const Loading* loading) {
    if (loading == nullptr) return;
    const StoredBlocks& stored = loading->stored;
    for (const LoadPart& part : loading->parts)
      bytes += part.tier == tier ? part.cells.size() * memory.slot_bytes() : 0;
    for (uint64_t block = loading->meeting.front_token() / kv.geometry().block_tokens;
         block < loading->meeting.low_block(); ++block) {
      const uint64_t i = block - stored.first;
      if (stored.tiers[i] == tier) bytes += tier::BytesOf(stored.on(tier).subspan(i, 1), memory.slot_bytes());
    }
  };
  for (const Request& request : running) add(request.loading.get());
  if (priority != tier::TransferPriority::kPrefetch) return bytes;
  for (const Prefetch& prefetch : up.prefetches) add(prefetch.loading.get());
  return bytes;
}

// What lower tiers have of the history beyond what is resident of it, where getting it from there is better than
// computing all. The sequence then begins with whole blocks; as many as it would without, which admission has counted.
std::unique_ptr<Loading> Engine::State::PlanLoad(Request& request, const Choice& choice) {
  if (!HasLowerTiers() || request.load_failed) return nullptr;
  const uint64_t block_tokens = kv.geometry().block_tokens, limit = SkippableOf(request, choice);
  const std::span<const TokenId> tokens = HistoryOf(request, choice);
  uint64_t whole = 0, resident = 0;
  if (choice.sequence.value != 0) {
    whole = resident = kv.Length(choice.sequence);
  } else {
    down.returns.Seen(kv::BlockKeys(identity, request.asked.scope, kv.geometry().block_tokens, tokens.first(limit)));
    resident = kv.Find(request.asked.scope, tokens, limit).tokens;
    whole = resident % block_tokens == 0 ? resident : kv.FindWhole(request.asked.scope, tokens, limit);
  }
  if (resident / block_tokens != whole / block_tokens || whole % block_tokens != 0) return nullptr;
  StoredBlocks stored = FindStored(request.asked.scope, tokens.first(limit), whole / block_tokens);
  if (stored.end <= resident) return nullptr;

  const sched::Decision decision = Decide(&request, tokens.size(), stored);
  NoteDecision(request, decision);
  if (decision.way == sched::ResumeWay::kRecompute) return nullptr;
  const sched::ResumeEstimate& chosen = decision.chosen();
  const bool first_part = decision.way == sched::ResumeWay::kBoth && chosen.meets_from > whole;
  const bool at_once = decision.way == sched::ResumeWay::kBoth && !first_part;
  stored.CutTo(first_part ? chosen.meets_from : chosen.end_token, kv.geometry());
  std::unique_ptr<Loading> loading = MakeLoading(tokens, std::move(stored));
  Schedule(*loading, decision, at_once);
  loading->then_more = first_part;
  loading->in_layers = memory.asynchronous() && decision.way == sched::ResumeWay::kLoad;
  if (at_once) loading->part_bytes = std::min(loading->part_bytes, chosen.load_bytes / kPartsToMeet);
  return loading;
}

// When computing begins, whatever is still on its way, and when that is late.
void Engine::State::Schedule(Loading& loading, const sched::Decision& decision, bool at_once) const {
  const double wait = std::max(kGrace * decision.chosen().wait_seconds, decision.step_seconds);
  loading.front_at = now + (at_once ? Nanos(0) : FromSeconds(wait));
  loading.deadline = now + PatienceFor(decision.estimates[static_cast<size_t>(sched::ResumeWay::kRecompute)]);
}

// Of the first of these tokens, up to the end of `stored`.
std::unique_ptr<Loading> Engine::State::MakeLoading(std::span<const TokenId> tokens, StoredBlocks stored) const {
  const kv::KvGeometry& geometry = kv.geometry();
  tokens = tokens.first(stored.end);
  sched::MeetingView view{.first_token = stored.first * geometry.block_tokens,
                          .end_token = tokens.size(),
                          .block_tokens = geometry.block_tokens};
  for (const uint32_t window : geometry.windows) {
    view.first_read.push_back(kv::FirstBlockKept(window, tokens.size(), geometry.block_tokens));
  }
  auto loading = std::make_unique<Loading>(std::move(stored), view);
  loading->tokens.assign(tokens.begin(), tokens.end());
  loading->part_bytes = tier::KvStore::run_bytes();
  return loading;
}

kv::SlotPromise* Engine::State::PromiseOf(Request& request) { return request.guaranteed ? &request.promise : nullptr; }

// Or goes on with it, where it was taken over.
void Engine::State::StartLoad(Request& request, const Choice& choice, std::unique_ptr<Loading> loading) {
  if (loading->sequence.value == 0) {
    const uint64_t windows = kv::SlotsHeld(sliding_part, loading->tokens.size());
    if (windows > 0 && !FitsWithExpected(request, windows)) return;
    if (!BeginLoad(*loading, choice.sequence, windows)) return;
  }
  request.loading = std::move(loading);
  PumpLoad(*request.loading, PromiseOf(request));
}

// Those that are there end; where the front has come to blocks in flight, it takes some over.
void Engine::State::SettleLoads() {
  for (size_t i = 0; i < running.size(); ++i) {
    if (running[i].loading == nullptr) continue;
    if (running[i].loading->meeting.done()) EndLoadOf(running[i]);
    Loading* const loading = running[i].loading.get();
    if (loading == nullptr || !FrontMayRun(*loading)) continue;
    if (loading->meeting.TakeOver(RowsToTakeOver(*loading)).empty()) continue;
    DropBelow(*loading, PromiseOf(running[i]));
  }
}

void Engine::State::EndLoadOf(Request& request) {
  Loading& loading = *request.loading;
  const LoadedTokens loaded = EndLoad(loading);
  request.loaded_tokens += loaded.all();
  request.failed_blocks += loading.failed_blocks;
  request.load_failed = loading.failed_blocks > 0;
  const bool then_more = loading.then_more && !request.load_failed;
  const uint64_t end = loading.tokens.size();
  request.loading.reset();
  Choice& choice = request.first_open();
  if (request.preemptions == 0 && !request.forked) {
    request.cached_tokens += static_cast<uint32_t>(loaded.all());
    request.host_tokens += static_cast<uint32_t>(loaded.host);
    request.disk_tokens += static_cast<uint32_t>(loaded.disk);
    totals.prompt_tokens_cached += loaded.all();
  }
  SurveyRunning();
  std::unique_ptr<Loading> more = then_more ? PlanLoad(request, choice) : nullptr;
  if (more != nullptr) StartLoad(request, choice, std::move(more));
  if (request.loading == nullptr && request.preemptions == 0 && !request.forked) {
    SampleHit(request, end);
  }
}

void Engine::State::PollStore() {
  EndCopies();
  std::vector<tier::KvStore::Ended> ended;
  if (store != nullptr) {
    NoteStoreHealth();
    ended = store->Poll(now);
    if (!ended.empty()) down.store_is_full = false;
    for (const tier::KvStore::Ended& end : ended) {
      if (!end.load) NoteStored(end);
    }
  }
  for (Request& request : running) {
    if (request.loading != nullptr) PollLoad(*request.loading, ended, PromiseOf(request));
  }
  for (Prefetch& prefetch : up.prefetches) {
    if (prefetch.loading != nullptr) PollLoad(*prefetch.loading, ended, &prefetch.promise);
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

void Engine::State::AbandonLoad(Request& request) {
  if (request.loading == nullptr) return;
  if (request.loading->gate) {
    Choice& choice = *std::ranges::find(request.choices, request.loading->sequence, &Choice::sequence);
    kv.Discard(std::exchange(choice.sequence, SequenceId(0)), request.loading->meeting.low_token());
  }
  EndTransfers(*request.loading);
  request.loading.reset();
}

uint64_t Engine::State::StoredTokens(const PrefixScope& scope, std::span<const TokenId> tokens) const {
  return HasLowerTiers() ? FindStored(scope, tokens, 0).end : 0;
}

// Waits for the disk: what it says holds over restarts.
Status Engine::State::ClearStore() {
  AbandonUnwritten(Unavailable("all KV was deleted meanwhile"));
  for (SlotCopies& copies : slot_copies) {
    copies.run.blocks.clear();
    copies.given_up.reset();
  }
  if (host != nullptr) host->EraseAll();
  if (store == nullptr) return OkStatus();
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
  stats->disk_reads = s.disk.reads.blocks;
  stats->disk_link = s.link;
}

std::optional<Nanos> Engine::State::NextDue() const {
  std::optional<Nanos> due = NextRetentionEnd();
  const auto sooner = [&](std::optional<Nanos> moment) {
    if (moment) due = due ? std::min(*due, *moment) : moment;
  };
  sooner(NextSessionDue());
  sooner(NextPrefetch());
  if (!slot_copies.empty()) sooner(memory.NextDone().value_or(now));
  for (const Request& request : running) {
    if (request.loading == nullptr) continue;
    if (request.loading->front_at > now) sooner(request.loading->front_at);
    if (HasArrived(*request.loading)) sooner(now);
  }
  for (const Prefetch& prefetch : up.prefetches) {
    if (prefetch.loading != nullptr && HasArrived(*prefetch.loading)) sooner(now);
  }
  if (store == nullptr) return due;
  if (!down.unwritten.empty() && !down.store_is_full) sooner(std::max(now, down.budget_due));
  sooner(store->WakeAt());
  return due;
}

}  // namespace cachalot::engine
