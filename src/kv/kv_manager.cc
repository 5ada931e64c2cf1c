#include "kv/kv_manager.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kv/kv_snapshot.h"
#include "kv/kv_state.h"

namespace cachalot::kv {

KvManager::State::State(KvGeometry geometry_in, std::unique_ptr<EvictionPolicy> policy, const cost::StepCost* step_cost,
                        bool with_shadow)
    : geometry(std::move(geometry_in)),
      pool(geometry.slots),
      unshared(geometry.slots, 0),
      block_slots(geometry.windows.size(), kNoSlot) {
  CACHALOT_CHECK(geometry.block_tokens > 0 && !geometry.windows.empty());
  if (with_shadow) shadow = std::make_unique<ShadowIndex>(geometry);
  if (policy != nullptr) index = std::make_unique<PrefixIndex>(geometry, pool, std::move(policy), step_cost);
  if (index != nullptr && shadow != nullptr) index->Tell(*shadow);
}

KvManager::KvManager(KvGeometry geometry, std::unique_ptr<EvictionPolicy> policy, const cost::StepCost* step_cost,
                     bool with_shadow)
    : state_(std::make_unique<State>(std::move(geometry), std::move(policy), step_cost, with_shadow)) {}

KvManager::~KvManager() { CACHALOT_CHECK(!state_->open); }

const KvGeometry& KvManager::geometry() const { return state_->geometry; }
uint32_t KvManager::free_slots() const { return state_->pool.free_count(); }
uint32_t KvManager::available_slots() const { return state_->pool.free_count() + state_->pool.idle_count(); }
uint32_t KvManager::full_slots_in_use() const { return state_->pool.in_use(SlotUse::kFull); }
uint64_t KvManager::evicted_slots() const { return state_->index == nullptr ? 0 : state_->index->evicted_slots(); }
ResidencyCounts KvManager::residency() const {
  return state_->index == nullptr ? ResidencyCounts{} : state_->index->residency();
}

uint32_t KvManager::EvictAllIdle() {
  State& state = *state_;
  CACHALOT_CHECK(!state.open);
  const uint32_t free = state.pool.free_count();
  while (state.index != nullptr && state.pool.idle_count() > 0 && state.index->EvictOne(Loss::kCleared)) {
  }
  return state.pool.free_count() - free;
}

void KvManager::SetNow(Nanos now) {
  if (state_->index != nullptr) state_->index->SetNow(now);
}

void KvManager::EvictExpired(uint32_t limit) {
  CACHALOT_CHECK(!state_->open);
  if (state_->index != nullptr) state_->index->EvictExpired(limit);
}

std::optional<Nanos> KvManager::NextExpiry() const {
  return state_->index == nullptr ? std::nullopt : state_->index->NextExpiry();
}

uint64_t KvManager::expired_slots() const { return state_->index == nullptr ? 0 : state_->index->expired_slots(); }
std::vector<SlotId> KvManager::TakeToScrub() { return state_->pool.TakeToScrub(); }

Sequence& KvManager::State::At(SequenceId id) const {
  Sequence* const recent = by_id[id.value % by_id.size()];
  if (recent != nullptr && recent->id == id) return *recent;
  const auto found =
      std::lower_bound(live.begin(), live.end(), id, [](const auto& s, SequenceId wanted) { return s->id < wanted; });
  CACHALOT_CHECK(found != live.end() && (*found)->id == id);
  return **found;
}

SequenceId KvManager::Create(const PrefixScope& scope, const RetentionHints& hints, Nanos until) {
  const SequenceId id = CreateUnindexed(hints);
  Sequence& sequence = state_->At(id);
  sequence.scope = scope;
  sequence.until = until;
  if (state_->index != nullptr) {
    sequence.cursor = &state_->index->root();
    state_->index->Enter(*sequence.cursor);
  }
  return id;
}

SequenceId KvManager::CreateUnindexed(const RetentionHints& hints) {
  State& state = *state_;
  CACHALOT_CHECK(!state.open);
  std::unique_ptr<Sequence> sequence;
  if (state.spare.empty()) {
    sequence = std::make_unique<Sequence>();
    sequence->tables.reserve(state.geometry.windows.size());
    for (const uint32_t window : state.geometry.windows) {
      sequence->tables.emplace_back(state.pool, window == 0 ? SlotUse::kFull : SlotUse::kSliding);
    }
  } else {
    sequence = std::move(state.spare.back());
    state.spare.pop_back();
  }
  sequence->id = SequenceId(state.next_id++);
  sequence->length = 0;
  sequence->visit = kNoVisit;
  sequence->hints = hints;
  sequence->until = kNever;
  sequence->chain = {};
  state.by_id[sequence->id.value % state.by_id.size()] = sequence.get();
  state.live.push_back(std::move(sequence));
  return state.live.back()->id;
}

SequenceId KvManager::Fork(SequenceId parent_id) {
  State& state = *state_;
  CACHALOT_CHECK(!state.open);
  const SequenceId child_id = Create(state.At(parent_id).scope, state.At(parent_id).hints);
  const Sequence& parent = state.At(parent_id);
  CACHALOT_CHECK(parent.above.end == 0);
  Sequence& child = state.At(child_id);
  child.length = parent.length;
  for (size_t group = 0; group < child.tables.size(); ++group) child.tables[group].ShareAll(parent.tables[group]);
  child.unsealed = parent.unsealed;
  state.ForkInShadow(parent, child);
  if (parent.cursor != nullptr) {
    state.index->Enter(*parent.cursor);
    state.index->Leave(*std::exchange(child.cursor, parent.cursor));
  }
  return child_id;
}

void KvManager::Free(SequenceId id) {
  CACHALOT_CHECK(!state_->open);
  state_->Free(state_->At(id));
}

void KvManager::State::Free(Sequence& sequence) {
  DropAbove(sequence, UINT32_MAX);
  sequence.above.end = 0;
  EndInShadow(sequence);
  if (sequence.cursor != nullptr) {
    SealShort(sequence);
    Withdraw(sequence);
    if (sequence.hints.ttl != Nanos::max()) RetainPath(sequence);
  }
  sequence.unsealed.clear();
  DropTables(sequence);
  if (sequence.cursor != nullptr) {
    index->EndUse(*sequence.cursor);
    index->EndVisit(sequence.visit);
    index->Leave(*std::exchange(sequence.cursor, nullptr));
  }
  Sequence*& recent = by_id[sequence.id.value % by_id.size()];
  if (recent == &sequence) recent = nullptr;
  const auto at = std::ranges::find_if(live, [&](const auto& s) { return s.get() == &sequence; });
  spare.push_back(std::move(*at));
  live.erase(at);
}

uint64_t KvManager::Length(SequenceId sequence) const { return state_->At(sequence).length; }

uint32_t KvManager::ExclusiveSlots(SequenceId sequence) const {
  uint32_t exclusive = 0;
  for (const PageTable& table : state_->At(sequence).tables) {
    const PageTableRef pages = table.Ref();
    for (uint32_t i = 0; i < pages.slot_count; ++i) {
      const SlotId slot(pages.slots[i]);
      exclusive += state_->pool.references(slot) == (state_->pool.indexed(slot) ? 2u : 1u);
    }
  }
  for (const PageTable& table : state_->At(sequence).above.tables) exclusive += table.count();
  return exclusive;
}

PageTableRef KvManager::Pages(SequenceId sequence, uint32_t group) const {
  const Sequence& found = state_->At(sequence);
  CACHALOT_CHECK(group < found.tables.size());
  return found.tables[group].Ref();
}

PrefixView KvManager::Find(const PrefixScope& scope, std::span<const TokenId> tokens, uint64_t limit) const {
  State& state = *state_;
  if (state.index == nullptr) return {};
  const PrefixMatch match = state.index->Find(scope, tokens, limit);
  PrefixView view{.tokens = match.tokens, .awaited = match.awaited, .full_tokens = match.full_tokens};
  if (match.awaited > match.tokens) view.pending = {match.pending, match.pending->writer};
  for (const PrefixNode* node = match.node; node->parent != nullptr; node = node->parent) {
    for (uint32_t group = 0; group < state.groups(); ++group) {
      if (state.geometry.windows[group] != 0) continue;
      ++view.full_slots;
      if (state.pool.references(SlotId(node->slots[group])) == 1) ++view.idle_full_slots;
    }
  }
  return view;
}

uint64_t KvManager::FindWhole(const PrefixScope& scope, std::span<const TokenId> tokens, uint64_t limit) const {
  return state_->index == nullptr ? 0 : state_->FindWhole(scope, tokens, limit).tokens;
}

bool KvManager::IsPending(const PendingBlock& block) const {
  return block.node != nullptr && block.node->writer == block.writer && block.node->written == 0;
}

void KvManager::Watch(PrefixWatch& watch) {
  if (state_->index != nullptr) state_->index->Watch(watch);
}

AttachedPrefix KvManager::Attach(SequenceId id, std::span<const TokenId> tokens, uint64_t limit, bool whole) {
  State& state = *state_;
  Sequence& sequence = state.At(id);
  CACHALOT_CHECK(!state.open && sequence.length == 0 && sequence.announced == 0);
  state.copies.clear();
  limit = std::min<uint64_t>(limit, tokens.size());
  const ShadowSight sight = state.Arrive(sequence, tokens);
  if (state.index == nullptr) {
    return {.account = state.AccountOf(sequence, {tokens.size(), limit, 0, 0, false}, sight)};
  }
  const PrefixMatch match =
      whole ? state.FindWhole(sequence.scope, tokens, limit) : state.index->Find(sequence.scope, tokens, limit);
  sequence.visit = state.index->StartVisit(match, tokens.size());
  state.StartAt(sequence, match);
  state.TouchPath(sequence);
  if (match.partial != nullptr && !state.CopyPartial(sequence, match, tokens)) {
    // Without room for the copy, its tokens are computed again.
    state.DropTables(sequence);
    state.StartAt(sequence, state.FindWhole(sequence.scope, tokens, match.tokens));
  }
  state.index->Announce(*sequence.cursor, sequence.scope,
                        tokens.subspan(uint64_t{sequence.cursor->end_block()} * state.geometry.block_tokens), id,
                        &sequence.ahead);
  sequence.announced = tokens.size();
  sequence.chain = sequence.cursor->chain;
  return {sequence.length, state.copies,
          state.AccountOf(sequence, {tokens.size(), limit, sequence.length, match.full_tokens, true}, sight)};
}

SequenceId KvManager::Hold(const PrefixScope& scope, std::span<const TokenId> tokens, uint64_t limit) {
  const SequenceId id = Create(scope);
  State& state = *state_;
  if (state.index != nullptr) state.StartAt(state.At(id), state.FindWhole(scope, tokens, limit));
  return id;
}

// A match that ends with a block.
PrefixMatch KvManager::State::FindWhole(const PrefixScope& scope, std::span<const TokenId> tokens, uint64_t limit) {
  for (;;) {
    limit -= limit % geometry.block_tokens;
    const PrefixMatch match = index->Find(scope, tokens, limit);
    if (match.tokens % geometry.block_tokens == 0) return match;
    limit = match.tokens;
  }
}

// Gives the sequence the whole blocks of the match, shared.
void KvManager::State::StartAt(Sequence& sequence, const PrefixMatch& match) {
  path.clear();
  for (PrefixNode* node = match.node; node->parent != nullptr; node = node->parent) path.push_back(node);
  const uint64_t tokens = match.tokens;
  for (uint32_t group = 0; group < groups(); ++group) {
    PageTable& table = sequence.tables[group];
    table.StartAt(static_cast<uint32_t>(FirstBlockKept(geometry.windows[group], tokens, geometry.block_tokens)));
    for (uint64_t block = table.first_block(); block < path.size(); ++block) {
      table.AppendShared(SlotId(path[path.size() - 1 - block]->slots[group]));
    }
  }
  sequence.length = path.size() * geometry.block_tokens;
  index->Enter(*match.node);
  index->Leave(*std::exchange(sequence.cursor, match.node));
  NoteScrub(sequence, 0);
}

void KvManager::State::TouchPath(const Sequence& sequence) {
  const Retention wish = WishOf(sequence);
  // The last block first, so that tails leave first.
  for (PrefixNode* node = sequence.cursor; node->parent != nullptr; node = node->parent) index->Touch(*node, wish);
}

// Its wishes count from now, the end of its use.
void KvManager::State::RetainPath(const Sequence& sequence) {
  const Retention wish = WishOf(sequence);
  for (PrefixNode* node = sequence.cursor; node->parent != nullptr; node = node->parent) index->Retain(*node, wish);
}

void KvManager::State::DropTables(Sequence& sequence) {
  for (uint32_t group = 0; group < groups(); ++group) {
    PageTable& table = sequence.tables[group];
    while (table.count() > 0) {
      const SlotId slot = table.tail();
      table.PopBack();
      if (index != nullptr && geometry.windows[group] != 0) index->OnReleased(slot.value);
    }
    table.Clear();
  }
}

// Takes fresh slots for the block that the match ends in, to be filled from the block found.
bool KvManager::State::CopyPartial(Sequence& sequence, const PrefixMatch& match, std::span<const TokenId> tokens) {
  PrefixNode& source = *match.partial;
  index->Pin(source);
  if (!MakeFree(groups())) {
    index->Unpin(source);
    return false;
  }
  index->Touch(source, WishOf(sequence));
  for (uint32_t group = 0; group < groups(); ++group) {
    const SlotId from = source.written > 0 ? At(source.writer).tables[group].tail() : SlotId(source.slots[group]);
    sequence.tables[group].Append();
    copies.push_back({from, sequence.tables[group].tail()});
  }
  index->Unpin(source);
  sequence.unsealed.assign(tokens.begin() + static_cast<ptrdiff_t>(sequence.length),
                           tokens.begin() + static_cast<ptrdiff_t>(match.tokens));
  sequence.length = match.tokens;
  NoteScrub(sequence, match.tokens / geometry.block_tokens);
  return true;
}

EntryInfo KvManager::State::InfoOf(const Sequence& sequence, uint64_t position) const {
  const uint64_t begin = position - 1 - (position - 1) % geometry.block_tokens;
  return {.slots = groups(),
          .position = position,
          .recompute_seconds = index->RecomputeSeconds(begin, position),
          .short_block = position % geometry.block_tokens != 0,
          .visit = sequence.visit,
          .retention = WishOf(sequence)};
}

Retention KvManager::State::WishOf(const Sequence& sequence) const {
  const RetentionHints& hints = sequence.hints;
  const Nanos deadline = hints.ttl < kNever - index->now() ? index->now() + hints.ttl : kNever;
  return {hints.priority, std::min(deadline, sequence.until)};
}

void KvManager::State::NoteScrub(const Sequence& sequence, uint64_t first) {
  if (!sequence.hints.scrub) return;
  for (const PageTable& table : sequence.tables) {
    for (uint64_t block = std::max<uint64_t>(first, table.first_block()); block < table.end_block(); ++block) {
      pool.ScrubWhenFree(SlotId(table.slot(static_cast<uint32_t>(block))));
    }
  }
}

// Its unfilled block, whose tokens nobody will add to any more, can be found from now on.
void KvManager::State::SealShort(Sequence& sequence) {
  PrefixNode* last = sequence.cursor;
  CloseOpen(sequence);
  const bool own = std::ranges::all_of(
      sequence.tables, [&](const PageTable& table) { return table.count() > 0 && pool.references(table.tail()) == 1; });
  if (!sequence.unsealed.empty() && own) {
    for (uint32_t g = 0; g < groups(); ++g) block_slots[g] = sequence.tables[g].tail().value;
    const PrefixKey key = index->KeyOf(sequence.scope, last->end_block(), sequence.unsealed);
    PrefixNode* const node = index->Seal(*last, key, block_slots, InfoOf(sequence, sequence.length));
    if (node != nullptr) last = node;
  }
  if (sequence.length > 0) index->MarkResume(*last, WishOf(sequence));
  sequence.unsealed.clear();
}

void KvManager::State::CloseOpen(Sequence& sequence) {
  if (sequence.open != nullptr) index->Withdraw(*std::exchange(sequence.open, nullptr), sequence.id);
}

void KvManager::State::Withdraw(Sequence& sequence) {
  for (auto node = sequence.ahead.rbegin(); node != sequence.ahead.rend(); ++node) index->Withdraw(**node, sequence.id);
  sequence.ahead.clear();
  sequence.announced = 0;
}

bool KvManager::State::MakeFree(uint64_t slots) {
  while (pool.free_count() < slots) {
    if (index == nullptr || !index->EvictOne()) return false;
  }
  return true;
}

KvSnapshot KvManager::Snapshot() const { return state_->Snapshot(); }

}  // namespace cachalot::kv
