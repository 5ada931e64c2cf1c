// Loads: KV that comes from lower tiers into a sequence from its end downward, while the front may compute what is
// below. What does not come, or not in time, is computed.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/engine_state.h"
#include "tier/kv_store.h"

namespace cachalot::engine {
namespace {

constexpr int64_t kHostCopies = 4;  // parts from host memory under way at once: what was begun can't be cancelled

}  // namespace

// The sequence's last tokens are going to come from lower tiers. False: there is no room for their windows beside those
// of what is computed.
bool Engine::State::BeginLoad(Loading& loading, SequenceId sequence, uint64_t promised) {
  loading.windows = {};
  if (promised > 0) {
    Result<kv::SlotPromise> windows = budget.Promise(promised, kv.full_slots_in_use());
    if (!windows.ok()) return false;
    loading.windows = std::move(windows).value();
  }
  loading.sequence = sequence;
  PinHost(loading);
  kv.BeginLoad(sequence, loading.tokens.size());
  loading.promotion = sched::PromotionId(++up.last_promotion);
  up.promotion.Enter(loading.promotion, tier::BytesOf(loading.stored.groups(), memory.slot_bytes()), now);
  up.promotion.Admit();
  return true;
}

// What comes from host memory stays there, whatever is handed down to make room for it.
void Engine::State::PinHost(Loading& loading) {
  const StoredBlocks& stored = loading.stored;
  for (uint64_t i = 0; i < stored.in_host.size(); ++i) {
    for (uint32_t group = 0; group < kv.geometry().windows.size(); ++group) {
      if ((stored.in_host[i] >> group & 1) == 0) continue;
      std::optional<tier::HostPin> pin = HostFind(stored.keys[stored.first + i], group);
      if (pin) loading.pins.emplace(std::pair(stored.first + i, group), std::move(*pin));
    }
  }
}

// Claims blocks and begins their transfers, as far as its turn has come and tiers take them. `promise`, if any, is that
// of the slots of full attention that it takes.
void Engine::State::PumpLoad(Loading& loading, kv::SlotPromise* promise) {
  if (!up.promotion.InFlight(loading.promotion)) return;
  for (;;) {
    if (!loading.parts.empty() && !loading.parts.back().begun()) {
      if (!BeginPart(loading, &loading.parts.back())) return;
    } else if (!ClaimPart(loading, promise)) {
      return;
    }
  }
}

// Of the blocks below `low`, those that one tier has, one run takes, and there is room for; at least one.
uint64_t Engine::State::BlocksOfPart(const Loading& loading, uint64_t low) const {
  const StoredBlocks& stored = loading.stored;
  if (low <= stored.first) return 1;
  const TierId tier = stored.tiers[low - 1 - stored.first];
  const bool whole = loading.in_layers && tier == TierId::kHost;
  // Ends of copies are seen between steps, so as much as comes in one has to be under way.
  const double in_step =
      HostRate().bytes_per_second * step_cost.Predict(work_shape.Rows(0, step_tokens_limit(), 1)) / kHostCopies;
  const uint64_t most =
      tier == TierId::kHost ? std::max(loading.part_bytes, static_cast<uint64_t>(in_step)) : loading.part_bytes;
  const uint64_t room = kv.available_slots() / kv.geometry().windows.size();
  uint64_t blocks = 0, bytes = 0;
  for (uint64_t i = low - stored.first; i > 0 && stored.tiers[i - 1] == tier; --i, ++blocks) {
    bytes += tier::BytesOf(stored.on(tier).subspan(i - 1, 1), memory.slot_bytes());
    if (blocks > 0 && (blocks >= room || (!whole && bytes > most))) break;
  }
  return blocks;
}

// The next blocks that one tier has and one run takes.
bool Engine::State::ClaimPart(Loading& loading, kv::SlotPromise* promise) {
  const StoredBlocks& stored = loading.stored;
  sched::Meeting& meeting = loading.meeting;
  const uint64_t low = meeting.low_block();
  const uint64_t groups = kv.geometry().windows.size();
  const uint64_t blocks = FreeForLoad(BlocksOfPart(loading, low) * groups) / groups;
  if (blocks == 0) return false;
  const std::vector<sched::BlockLoad> loads = meeting.NextLoads(blocks);
  if (meeting.low_block() == low) return false;
  AwaitCopies((low - meeting.low_block()) * groups);
  std::optional<std::vector<kv::LoadCell>> cells = kv.ClaimLoad(loading.sequence, meeting.low_block());
  ScrubFreed();
  if (!cells) {  // the front takes the place of who has no room
    if (!loads.empty()) meeting.Failed(loads.front().block);
    meeting.StopLoading();
    loading.front_at = std::min(loading.front_at, now);
    return false;
  }
  if (promise != nullptr) {
    const auto full = static_cast<uint64_t>(
        std::ranges::count_if(*cells, [&](const kv::LoadCell& c) { return kv.geometry().windows[c.group] == 0; }));
    promise->ShrinkTo(promise->slots() - std::min(promise->slots(), full));
  }
  if (loads.empty()) return false;
  loading.parts.push_back({.tier = stored.tiers[loads.front().block - stored.first],
                           .first = loads.back().block,
                           .blocks = loads.size(),
                           .cells = std::move(*cells)});
  return true;
}

bool Engine::State::BeginPart(Loading& loading, LoadPart* part) {
  if (part->tier == TierId::kHost) return BeginHostPart(loading, part);
  const StoredBlocks& stored = loading.stored;
  const std::span<const uint32_t> groups = stored.on(TierId::kDisk).subspan(part->first - stored.first, part->blocks);
  const Result<tier::TransferId> id =
      store->Load(RunOf(loading.tokens, stored.keys, part->first, groups), tier::BytesOf(groups, memory.slot_bytes()),
                  loading.deadline, loading.priority);
  if (id.ok()) part->transfer = *id;
  return id.ok();
}

bool Engine::State::BeginHostPart(Loading& loading, LoadPart* part) {
  const auto from_host = [](const SlotCopies& copies) { return !copies.pins.empty(); };
  if (std::ranges::count_if(slot_copies, from_host) >= kHostCopies) return false;
  BeginArrival(loading, part, {});
  return true;
}

// Claimed blocks below the lowest that the meeting still has are given up.
void Engine::State::DropBelow(Loading& loading, kv::SlotPromise* promise) {
  const uint64_t low = loading.meeting.low_block();
  while (!loading.parts.empty() && loading.parts.back().first + loading.parts.back().blocks <= low) {
    if (loading.parts.back().transfer) store->Cancel(*loading.parts.back().transfer);
    loading.parts.pop_back();
  }
  const uint32_t full = kv.DropLoad(loading.sequence, low);
  if (promise != nullptr) promise->Restore(full);
}

// Nothing of it comes to its slots any more.
void Engine::State::EndTransfers(Loading& loading) {
  for (const LoadPart& part : loading.parts) {
    if (part.transfer) store->Cancel(*part.transfer);
  }
  loading.parts.clear();
  loading.pins.clear();
  up.promotion.Leave(loading.promotion);
  up.promotion.Admit();
}

// Nobody goes on with it: its sequence ends.
void Engine::State::DropLoad(Loading& loading) {
  EndTransfers(loading);
  kv.Free(std::exchange(loading.sequence, SequenceId(0)));
}

// The part's blocks are there, or not.
void Engine::State::EndPart(Loading& loading, const LoadPart& part, const Status& status, kv::SlotPromise* promise) {
  if (status.ok()) {
    for (uint64_t block = part.first; block < part.first + part.blocks; ++block) loading.meeting.Loaded(block);
    return;
  }
  const uint64_t last = part.first + part.blocks - 1;
  if (loading.meeting.FateOf(last) == sched::BlockFate::kLoading) loading.failed_blocks += part.blocks;
  loading.meeting.Failed(last);
  loading.front_at = std::min(loading.front_at, now);
  DropBelow(loading, promise);
}

// Requires that all of it is there: the sequence is as if it had computed what was loaded. Returns the tokens that
// were.
LoadedTokens Engine::State::EndLoad(Loading& loading) {
  const uint64_t low = loading.meeting.low_token();
  const StoredBlocks& stored = loading.stored;
  const uint64_t block_tokens = kv.geometry().block_tokens;
  LoadedTokens loaded;
  for (uint64_t block = loading.meeting.low_block(); block < stored.keys.size(); ++block) {
    const bool from_host = stored.tiers[block - stored.first] == TierId::kHost;
    (from_host ? loaded.host : loaded.disk) += std::min(block_tokens, loading.tokens.size() - block * block_tokens);
  }
  totals.tiers.host_loaded_tokens += loaded.host;
  totals.tiers.loaded_tokens += loaded.disk;
  if (!loading.gate) kv.EndLoad(loading.sequence, std::span(loading.tokens).subspan(low));
  EndTransfers(loading);
  if (loading.failed_blocks > 0) ++totals.tiers.failed_loads;
  return loaded;
}

// Of the blocks in flight that it has come to, the front takes over so many rows that it will be through with them when
// the loader has come down to there.
uint64_t Engine::State::RowsToTakeOver(const Loading& loading) const {
  const uint64_t block_tokens = kv.geometry().block_tokens;
  const uint64_t rows = loading.meeting.loading() * block_tokens;
  const double compute = step_cost.Added(work_shape.Rows(loading.meeting.front_token(), rows, 0));
  double load = 0;
  for (const LoadPart& part : loading.parts) {
    load += static_cast<double>(part.cells.size() * memory.slot_bytes()) / RateOf(part.tier).bytes_per_second;
  }
  return sched::RowsToTakeOver(rows, compute, load, step_tokens_limit());
}

// Copies into slots that were begun are awaited.
bool Engine::State::FrontMayRun(const Loading& loading) const {
  if (now < loading.front_at) return false;
  const sched::Meeting& meeting = loading.meeting;
  if (meeting.front_token() < meeting.low_token()) return true;
  return meeting.FateOf(meeting.low_block()) == sched::BlockFate::kLoading && !loading.parts.back().arrival;
}

// What ended of the load's parts.
void Engine::State::PollLoad(Loading& loading, std::span<tier::KvStore::Ended> ended, kv::SlotPromise* promise) {
  for (tier::KvStore::Ended& end : ended) {
    const auto part = std::ranges::find(loading.parts, end.id, [](const LoadPart& p) { return p.transfer; });
    if (!end.load || part == loading.parts.end()) continue;
    part->transfer.reset();
    if (end.status.ok()) {
      BeginArrival(loading, &*part, std::move(end.bytes));
    } else {
      part->arrival.emplace().status = end.status;
    }
  }
  for (LoadPart& part : loading.parts) {
    if (part.tier == TierId::kHost && part.arrival && !loading.gate) HostObserve(&*part.arrival);
  }
  EndCopies();
  for (;;) {
    const auto part = std::ranges::find_if(loading.parts, [&](const LoadPart& p) { return HasArrived(p); });
    if (part == loading.parts.end()) break;
    const LoadPart over = std::move(*part);
    loading.parts.erase(part);
    EndCopies();  // its own may have ended since they were last asked about
    EndArrival(loading, over, promise);
  }
  PumpLoad(loading, promise);
}

}  // namespace cachalot::engine
