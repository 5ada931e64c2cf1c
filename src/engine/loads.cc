// Loads: KV that comes from lower tiers into a sequence from its end downward, while the front may compute what is
// below. What does not come, or not in time, is computed.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "engine/engine_state.h"
#include "tier/kv_store.h"

namespace cachalot::engine {
namespace {

constexpr size_t kHostCopies = 4;  // parts from host memory under way at once: what was begun can't be cancelled

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
  loading.promotion = sched::PromotionId(++last_promotion);
  promotion.Enter(loading.promotion, tier::BytesOf(loading.stored.groups, memory.slot_bytes()), now);
  promotion.Admit();
  return true;
}

// What comes from host memory stays there, whatever is handed down to make room for it.
void Engine::State::PinHost(Loading& loading) {
  const StoredBlocks& stored = loading.stored;
  for (uint64_t i = 0; i < stored.groups.size(); ++i) {
    for (uint32_t group = 0; stored.tiers[i] == TierId::kHost && group < kv.geometry().windows.size(); ++group) {
      if ((stored.groups[i] >> group & 1) == 0) continue;
      std::optional<tier::HostPin> pin = HostFind(stored.keys[stored.first + i], group);
      if (pin) loading.pins.emplace(std::pair(stored.first + i, group), std::move(*pin));
    }
  }
}

// Claims blocks and begins their transfers, as far as its turn has come and tiers take them. `promise`, if any, is that
// of the slots of full attention that it takes.
void Engine::State::PumpLoad(Loading& loading, kv::SlotPromise* promise) {
  if (!promotion.InFlight(loading.promotion)) return;
  for (;;) {
    if (!loading.parts.empty() && !loading.parts.back().begun()) {
      if (!BeginPart(loading, &loading.parts.back())) return;
    } else if (!ClaimPart(loading, promise)) {
      return;
    }
  }
}

// The next blocks that one tier has and one run takes.
bool Engine::State::ClaimPart(Loading& loading, kv::SlotPromise* promise) {
  const StoredBlocks& stored = loading.stored;
  sched::Meeting& meeting = loading.meeting;
  const uint64_t low = meeting.low_block();
  const auto index = [&](uint64_t block) { return block - stored.first; };
  uint64_t blocks = 1, bytes = 0;
  for (uint64_t block = low; block > stored.first; --block) {
    bytes += tier::BytesOf({&stored.groups[index(block - 1)], 1}, memory.slot_bytes());
    if (block < low && (bytes > loading.part_bytes || stored.tiers[index(block - 1)] != stored.tiers[index(block)])) {
      break;
    }
    blocks = low - block + 1;
  }
  const std::vector<sched::BlockLoad> loads = meeting.NextLoads(blocks);
  if (meeting.low_block() == low) return false;
  const uint64_t most = (low - meeting.low_block()) * kv.geometry().windows.size();
  FreeForLoad(most);
  AwaitCopies(most);
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
  loading.parts.push_back({.tier = stored.tiers[index(loads.front().block)],
                           .first = loads.back().block,
                           .blocks = loads.size(),
                           .cells = std::move(*cells)});
  return true;
}

bool Engine::State::BeginPart(Loading& loading, LoadPart* part) {
  if (part->tier == TierId::kHost) return BeginHostPart(loading, part);
  const StoredBlocks& stored = loading.stored;
  const std::span<const uint32_t> groups = std::span(stored.groups).subspan(part->first - stored.first, part->blocks);
  const Result<tier::TransferId> id = store->Load(RunOf(loading.tokens, stored.keys, part->first, groups),
                                                  tier::BytesOf(groups, memory.slot_bytes()), loading.deadline);
  if (id.ok()) part->transfer = *id;
  return id.ok();
}

bool Engine::State::BeginHostPart(Loading& loading, LoadPart* part) {
  if (host_copies >= kHostCopies) return false;
  HostCopy copy{.begun = now, .steps = totals.steps};
  for (const kv::LoadCell& cell : part->cells) {
    auto pin = loading.pins.extract({cell.block, cell.group});
    if (pin.empty()) break;  // it went before it was pinned: there are fewer pins than cells
    copy.last = memory.CopyIn(pin.mapped().bytes(), cell.slot);
    copy.pins.push_back(std::move(pin.mapped()));
  }
  part->copy = std::move(copy);
  ++host_copies;
  return true;
}

// Its slots are about to be given up.
void Engine::State::StopPart(LoadPart& part) {
  if (part.transfer) store->Cancel(*part.transfer);
  if (!part.copy) return;
  FinishCopies(part);
  part.copy.reset();
  --host_copies;
}

void Engine::State::FinishCopies(const LoadPart& part) {
  if (part.copy && !part.copy->pins.empty()) memory.Wait(part.copy->last);
}

// Claimed blocks below the lowest that the meeting still has are given up.
void Engine::State::DropBelow(Loading& loading, kv::SlotPromise* promise) {
  const uint64_t low = loading.meeting.low_block();
  while (!loading.parts.empty() && loading.parts.back().first + loading.parts.back().blocks <= low) {
    StopPart(loading.parts.back());
    loading.parts.pop_back();
  }
  if (!loading.parts.empty() && loading.parts.back().first < low) FinishCopies(loading.parts.back());
  const uint32_t full = kv.DropLoad(loading.sequence, low);
  if (promise != nullptr) promise->Restore(full);
}

// Nothing of it comes to its slots any more.
void Engine::State::EndTransfers(Loading& loading) {
  for (LoadPart& part : loading.parts) StopPart(part);
  loading.parts.clear();
  loading.pins.clear();
  promotion.Leave(loading.promotion);
  promotion.Admit();
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

// What its sequence will see of the part's blocks goes to its slots.
void Engine::State::CopyIn(const Loading& loading, const LoadPart& part, std::span<const std::byte> bytes) {
  std::optional<exec::CopyTicket> last;
  auto cell = part.cells.begin();
  for (uint64_t block = part.first; block < part.first + part.blocks; ++block) {
    const bool wanted = loading.meeting.FateOf(block) == sched::BlockFate::kLoading;
    for (uint32_t group = 0; group < kv.geometry().windows.size(); ++group) {
      if ((loading.stored.groups[block - loading.stored.first] >> group & 1) == 0) continue;
      const std::span<const std::byte> slot = bytes.first(memory.slot_bytes());
      bytes = bytes.subspan(memory.slot_bytes());
      if (cell == part.cells.end() || cell->block != block || cell->group != group) continue;
      if (wanted) last = memory.CopyIn(slot, cell->slot);
      ++cell;
    }
  }
  if (last) memory.Wait(*last);  // copies are done in the order given
}

// Requires that all of it is there: the sequence is as if it had computed what was loaded. Returns the tokens that
// were.
uint64_t Engine::State::EndLoad(Loading& loading) {
  const uint64_t low = loading.meeting.low_token();
  const StoredBlocks& stored = loading.stored;
  const uint64_t block_tokens = kv.geometry().block_tokens;
  for (uint64_t block = loading.meeting.low_block(); block < stored.keys.size(); ++block) {
    const bool from_host = stored.tiers[block - stored.first] == TierId::kHost;
    (from_host ? totals.tiers.host_loaded_tokens : totals.tiers.loaded_tokens) +=
        std::min(block_tokens, loading.tokens.size() - block * block_tokens);
  }
  kv.EndLoad(loading.sequence, std::span(loading.tokens).subspan(low));
  EndTransfers(loading);
  if (loading.failed_blocks > 0) ++totals.tiers.failed_loads;
  return loading.tokens.size() - low;
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
  const double share = compute + load > 0 ? load / (compute + load) : 1;
  const auto fair = static_cast<uint64_t>(std::ceil(share * static_cast<double>(rows)));
  return std::clamp<uint64_t>(fair, 1, step_tokens_limit());
}

// Copies from host memory that were begun are awaited.
bool Engine::State::FrontMayRun(const Loading& loading) const {
  if (now < loading.front_at) return false;
  const sched::Meeting& meeting = loading.meeting;
  if (meeting.front_token() < meeting.low_token()) return true;
  return meeting.FateOf(meeting.low_block()) == sched::BlockFate::kLoading && !loading.parts.back().copy;
}

// What ended of the load's parts.
void Engine::State::PollLoad(Loading& loading, std::span<tier::KvStore::Ended> ended, kv::SlotPromise* promise) {
  for (tier::KvStore::Ended& end : ended) {
    const auto part = std::ranges::find(loading.parts, end.id, [](const LoadPart& p) { return p.transfer; });
    if (!end.load || part == loading.parts.end()) continue;
    const LoadPart over = std::move(*part);
    loading.parts.erase(part);
    if (end.status.ok()) CopyIn(loading, over, end.bytes.bytes());
    EndPart(loading, over, end.status, promise);
  }
  for (;;) {
    const auto part = std::ranges::find_if(loading.parts, [&](const LoadPart& p) {
      return p.copy && (p.copy->pins.empty() || memory.Done(p.copy->last));
    });
    if (part == loading.parts.end()) break;
    const LoadPart over = std::move(*part);
    loading.parts.erase(part);
    EndHostPart(loading, over, promise);
  }
  PumpLoad(loading, promise);
}

void Engine::State::EndHostPart(Loading& loading, const LoadPart& part, kv::SlotPromise* promise) {
  --host_copies;
  const HostCopy& copy = *part.copy;
  const bool awaited = copy.steps == totals.steps;  // else the end was not seen when it came
  if (awaited && !copy.pins.empty()) HostObserve(copy.pins.size() * memory.slot_bytes(), ToSeconds(now - copy.begun));
  const bool whole = copy.pins.size() == part.cells.size();
  EndPart(loading, part, whole ? OkStatus() : Unavailable("it is no longer in host memory"), promise);
  if (!whole) return;
  for (const kv::LoadCell& cell : part.cells) HostCameUp(loading.stored.keys[cell.block], cell.group);
}

}  // namespace cachalot::engine
