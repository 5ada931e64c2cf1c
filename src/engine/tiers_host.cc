// Host memory below the hot pool: blocks that give way go there, and slots are held while they are copied.
#include <algorithm>
#include <limits>
#include <utility>

#include "engine/engine_state.h"
#include "kv/shadow_index.h"
#include "sched/write_behind.h"
#include "tier/host_tier.h"

namespace cachalot::engine {
namespace {

constexpr double kFreeShare = 1.0 / 16;  // of the slots that nobody uses: kept free, so that nobody waits for copies
constexpr uint64_t kCopyingShare = 8;    // at most 1/8 of the pool is on its way out
constexpr double kCopyPrice = 0.01;      // seconds that others lose by a second of copying beside them

// Blocks leave until so many slots are free, or will be once their copies have ended.
void EvictUntil(uint64_t slots, Haste haste, kv::KvManager& kv, WayDown* down) {
  const uint64_t given_up = kv.free_slots() + kv.deferred_slots();
  if (given_up >= slots) return;
  down->haste = haste;
  kv.EvictAhead(static_cast<uint32_t>(std::min<uint64_t>(slots - given_up, kv.geometry().slots)));
  down->haste = Haste::kNone;
}

}  // namespace

void Engine::State::TakeLeaving(const kv::LeavingBlock& block) {
  using enum sched::DownReason;
  std::vector<tier::HostKey> keys;
  const uint32_t there = host->GroupsOf(block.key);
  for (uint32_t group = 0; group < block.slots.size(); ++group) {
    if (block.slots[group] != kv::kNoSlot && (there >> group & 1) == 0) keys.push_back({block.key, group});
  }
  if (keys.empty()) return;
  const bool at_once = memory.asynchronous() && down.haste == Haste::kNone;
  if (!at_once) down.returns.Left(sched::Leaver::kBlock, block.key);
  sched::DownDecision decision = DecideLeaving(block, keys.size(),
                                               at_once                        ? kNeededAtOnce
                                               : down.haste == Haste::kWished ? kAskedFor
                                                                              : kLeastCost);
  std::optional<tier::HostReservation> cells;
  if (decision.way == sched::WayDown::kHandDown) {
    const auto is_expected = [this](const Digest& key) { return up.expected.Contains(key); };
    host->MakeRoom(static_cast<uint32_t>(keys.size()), is_expected);  // what goes is on disk, or was not worth it
    Result<tier::HostReservation> reserved = host->Reserve(keys, block.wanted_until);
    if (reserved.ok()) {
      cells = std::move(reserved).value();
    } else {
      decision.way = sched::WayDown::kDrop;
      decision.reason = kNoRoom;
    }
  }
  const uint64_t number = NoteDown({.decision = decision});
  if (!cells) {
    ++totals.tiers.host_dropped_blocks;
    return;
  }
  SlotCopies copies;
  copies.owner = {.decision = number, .blocks = 1};
  for (size_t i = 0; i < keys.size(); ++i) CopySlotOut(SlotId(block.slots[keys[i].group]), cells->bytes(i), &copies);
  copies.cells = std::move(*cells);
  copies.given_up = {block.key, std::vector<uint32_t>(block.slots.size(), kv::kNoSlot), block.wanted_until};
  for (const tier::HostKey& key : keys) copies.given_up->slots[key.group] = block.slots[key.group];
  slot_copies.push_back(std::move(copies));
  EndCopies();
}

// What is on its way down from a prompt stays where it is: its slots hold it until their copies have ended.
void Engine::State::TakeBack(const PrefixScope& scope, std::span<const TokenId> tokens) {
  if (host == nullptr || kv.deferred_slots() == 0) return;
  const auto given_up = [&](const Digest& key) {
    std::optional<kv::GivenUpBlock> found;
    for (const SlotCopies& copies : slot_copies) {
      if (!copies.given_up || copies.given_up->key != key) continue;
      if (!found) {
        found = copies.given_up;
      } else {
        for (size_t group = 0; group < found->slots.size(); ++group) {
          found->slots[group] = std::min(found->slots[group], copies.given_up->slots[group]);
        }
      }
    }
    return found;
  };
  for (const Digest& key : kv.TakeBack(identity, scope, tokens, given_up)) {
    for (SlotCopies& copies : slot_copies) {
      if (copies.given_up && copies.given_up->key == key) copies.given_up.reset();
    }
    ++totals.tiers.taken_back_blocks;
  }
}

// It cannot stay.
sched::DownDecision Engine::State::DecideLeaving(const kv::LeavingBlock& block, uint64_t cells,
                                                 sched::DownReason reason) const {
  const sched::DownKv what{.tier = TierId::kHost,
                           .first_token = block.position,
                           .tokens = block.tokens,
                           .blocks = 1,
                           .bytes = cells * memory.slot_bytes()};
  const double returns = up.expected.Contains(block.key) ? 1 : down.returns.Of(sched::Leaver::kBlock);
  return sched::DecideDown(what,
                           {.reuse = ReuseOf(what, returns),
                            .keep = std::numeric_limits<double>::infinity(),
                            .write_price = down.haste == Haste::kAwaited ? 1 : kCopyPrice,
                            .lower_exists = reason != sched::DownReason::kNeededAtOnce},
                           reason);
}

void Engine::State::CopySlotOut(SlotId slot, std::span<std::byte> to, SlotCopies* copies) {
  copies->tickets.push_back(memory.CopyOut(slot, to));
  copies->out.push_back(slot);
  kv.BeginCopyOut(slot);
}

// Of copies that are done, in the order in which they were begun.
void Engine::State::EndCopies() {
  const auto done = [&](const SlotCopies& copies) {
    return copies.tickets.empty() || memory.Done(copies.tickets.back());  // none: all of a run lay in host memory
  };
  while (!slot_copies.empty() && done(slot_copies.front())) {
    SlotCopies copies = std::move(slot_copies.front());
    slot_copies.pop_front();
    for (const SlotId slot : copies.in) kv.EndCopyIn(slot);
    for (const SlotId slot : copies.out) kv.EndCopyOut(slot);
    if (!copies.pins.empty() && StatusOf(copies.tickets).ok()) {
      totals.tiers.host_loaded_bytes += copies.pins.size() * memory.slot_bytes();
    }
    if (!copies.in.empty()) continue;
    const Status status = StatusOf(copies.tickets);
    if (copies.given_up && status.ok()) {
      totals.tiers.host_stored_bytes += copies.cells.size() * memory.slot_bytes();
      std::move(copies.cells).Commit();
    }
    if (!copies.staging.bytes().empty()) {
      if (status.ok()) {
        StoreRun(copies);
      } else {
        down.EndWrite(copies.owner, status);
      }
    } else if (copies.given_up) {
      down.EndWrite(copies.owner, status);
    } else {  // it was taken back, or deleted
      down.Count(copies.owner.decision, &sched::DownOutcome::skipped_blocks, copies.owner.blocks);
    }
  }
}

// Once all of these copies are done: the first failure.
Status Engine::State::StatusOf(std::span<const exec::CopyTicket> tickets) {
  Status first;
  for (const exec::CopyTicket ticket : tickets) {
    if (Status status = memory.Wait(ticket); first.ok()) first = std::move(status);
  }
  return first;
}

void Engine::State::AwaitCopy() {
  const std::vector<exec::CopyTicket>& tickets = slot_copies.front().tickets;
  if (!tickets.empty()) (void)memory.Wait(tickets.back());  // EndCopies sees how it went
  EndCopies();
}

// For whoever takes slots now: what must go for it is handed down where that is worth the time of everybody.
void Engine::State::AwaitCopies(uint64_t slots) {
  if (host != nullptr && memory.asynchronous()) {
    EvictUntil(slots, Haste::kAwaited, kv, &down);
    while (kv.deferred_slots() > 0 && kv.free_slots() < slots) AwaitCopy();
  }
  const auto at_hand = [&] {
    const uint64_t held = kv.leaving_slots();
    return kv.available_slots() - std::min<uint64_t>(held, kv.available_slots());
  };
  while (kv.leaving_slots() + kv.deferred_slots() > 0 && at_hand() < slots) AwaitCopy();
}

// Some slots are kept free, before somebody needs them, by handing down what would have to go next.
void Engine::State::HandDownAhead() {
  EndCopies();
  if (host == nullptr || !memory.asynchronous()) return;
  const uint64_t deferred = kv.deferred_slots(), most = kv.geometry().slots / kCopyingShare;
  if (deferred >= most) return;
  const uint64_t wanted = sched::BlocksToClean(
      {.evictable = kv.available_slots() + deferred, .clean = kv.free_slots(), .copying = deferred}, kFreeShare);
  if (wanted == 0) return;
  EvictUntil(kv.free_slots() + deferred + std::min(wanted, most - deferred), Haste::kAhead, kv, &down);
}

// For a load, which takes many slots at once: what must go for it is handed down, as it would else be dropped. Returns
// how many of them it may have now; none: others are under way.
uint64_t Engine::State::FreeForLoad(uint64_t slots) {
  if (host == nullptr || !memory.asynchronous()) return slots;
  EvictUntil(slots, Haste::kAhead, kv, &down);
  EndCopies();
  return kv.deferred_slots() == 0 ? slots : std::min<uint64_t>(slots, kv.free_slots());
}

// What is idle of these tokens' blocks from token `from` on leaves the hot pool. Returns how many slots.
uint64_t Engine::State::HandDown(const PrefixScope& scope, std::span<const TokenId> tokens, uint64_t from) {
  down.haste = Haste::kWished;
  const uint64_t slots = kv.EvictIdle(scope, tokens, from, kv::Loss::kCapacity);
  down.haste = Haste::kNone;
  admission_due |= slots > 0;
  return slots;
}

std::vector<uint32_t> Engine::State::HostGroups(std::span<const Digest> keys) const {
  std::vector<uint32_t> groups(keys.size(), 0);
  if (host == nullptr) return groups;
  std::ranges::transform(keys, groups.begin(), [this](const Digest& key) { return host->GroupsOf(key); });
  return groups;
}

std::optional<tier::HostPin> Engine::State::HostFind(const Digest& key, uint32_t group) {
  return host == nullptr ? std::nullopt : host->Find({key, group}, tier::HostUse::kRequest);
}

// It is in the hot pool now, and not in both.
void Engine::State::HostCameUp(const Digest& key, uint32_t group) {
  if (host != nullptr) host->Erase(tier::HostKey{key, group});
}

TierRate Engine::State::HostRate() const { return host_rates.Rate(TierId::kHost, Direction::kUp, now); }

// How fast the link is, by the first layer: others come while nobody looks. Where a step ran meanwhile so did that, and
// all that it tells is that the link may be faster than was thought.
void Engine::State::HostObserve(Arrival* arrival) {
  if (arrival->observed || arrival->layers.empty() || !memory.Done(arrival->layers.front())) return;
  arrival->observed = true;
  const double seconds = ToSeconds(now - arrival->begun);
  const uint64_t bytes = arrival->bytes / arrival->layers.size();
  const bool seen_late = arrival->steps != totals.steps;
  if (!memory.Wait(arrival->layers.front()).ok()) return;
  if (seen_late && seconds >= TransferSeconds(HostRate(), bytes, 0)) return;
  host_rates.Observe(TierId::kHost, Direction::kUp, {.bytes = bytes, .seconds = seconds}, now);
}

void Engine::State::AddHostStats(TierStats* stats) const {
  if (host == nullptr) return;
  const tier::HostLedger ledger = host->ledger();
  const tier::HostCounts& counts = host->counts();
  stats->host_limit_bytes = ledger.limit_bytes;
  stats->host_cached_bytes = ledger.cached_bytes;
  stats->host_moving_bytes = ledger.reserved_bytes + ledger.leaving_bytes;
  stats->host_free_bytes = ledger.free_bytes;
  stats->host_overhead_bytes = ledger.metadata_bytes + ledger.spare_bytes;
  stats->host_found_cells = counts.found;
  stats->host_evicted_cells = counts.evicted;
}

}  // namespace cachalot::engine
