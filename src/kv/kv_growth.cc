// The step: reserve, commit, roll back.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "kv/kv_snapshot.h"
#include "kv/kv_state.h"

namespace cachalot::kv {

StepReservation::StepReservation(StepReservation&& other) noexcept : manager_(std::exchange(other.manager_, nullptr)) {}

StepReservation::~StepReservation() {
  if (manager_ != nullptr) manager_->RollBack();
}

std::span<const BlockCopy> StepReservation::copies() const {
  CACHALOT_CHECK(manager_ != nullptr);
  return manager_->state_->copies;
}

std::span<const uint32_t> StepReservation::full_slots_taken() const {
  CACHALOT_CHECK(manager_ != nullptr);
  return manager_->state_->full_slots_taken;
}

void StepReservation::Commit() && {
  CACHALOT_CHECK(manager_ != nullptr);
  std::exchange(manager_, nullptr)->Commit();
}

uint32_t KvManager::SlotsToGrow(SequenceId sequence, uint32_t tokens) const {
  CACHALOT_CHECK(!state_->open);
  const Growth growth{sequence, tokens, {}};
  const uint64_t needed = state_->SlotsNeeded({&growth, 1});
  return static_cast<uint32_t>(std::min<uint64_t>(needed, UINT32_MAX));
}

uint64_t KvManager::SlotsToGrow(std::span<const Growth> growth) const {
  CACHALOT_CHECK(!state_->open);
  return state_->SlotsNeeded(growth);
}

Result<StepReservation> KvManager::Reserve(std::span<const Growth> growth) {
  State& state = *state_;
  CACHALOT_CHECK(!state.open);
  const uint64_t needed = state.SlotsNeeded(growth);
  if (needed > available_slots()) {
    return Overloaded(fmt::format("KV pool: the step needs {} slots; {} of {} are free", needed, available_slots(),
                                  state.pool.slots()));
  }
  if (!state.MakeFree(needed)) {
    return Internal(fmt::format("KV pool: the step needs {} slots; {} are free, and nothing of what is idle is let go",
                                needed, state.pool.free_count()));
  }
  state.open = true;
  state.copies.clear();  // those of an Attach have been started, and their sources may be gone
  for (const Growth& g : growth) {
    Sequence& sequence = state.At(g.sequence);
    CACHALOT_CHECK(!sequence.in_step);
    sequence.in_step = true;
    state.Grow(sequence, g);
  }
  return StepReservation(this);
}

void KvManager::Commit() {
  for (Sequence* sequence : state_->grown) state_->KeepGrowth(*sequence);
  state_->EndStep();
}

void KvManager::RollBack() {
  for (auto sequence = state_->grown.rbegin(); sequence != state_->grown.rend(); ++sequence) {
    state_->UndoGrow(**sequence);
  }
  state_->EndStep();
}

uint64_t KvManager::State::FreshBlocks(const Sequence& sequence, uint32_t tokens) const {
  return BlocksFor(sequence.length + tokens, geometry.block_tokens) - BlocksFor(sequence.length, geometry.block_tokens);
}

bool KvManager::State::WritesTail(const Sequence& sequence, uint32_t tokens) const {
  return tokens > 0 && sequence.length % geometry.block_tokens != 0;
}

// Exact also where several sequences leave the same tail: the last one to own it keeps it.
uint64_t KvManager::State::SlotsNeeded(std::span<const Growth> growth) {
  uint64_t needed = 0;
  for (const Growth& g : growth) {
    const Sequence& sequence = At(g.sequence);
    needed += FreshBlocks(sequence, g.tokens) * sequence.tables.size();
    if (!WritesTail(sequence, g.tokens)) continue;
    for (const PageTable& table : sequence.tables) {
      const SlotId tail = table.tail();
      if (pool.references(tail) - unshared[tail.value] < 2) continue;
      ++needed;
      ++unshared[tail.value];
      touched.push_back(tail);
    }
  }
  for (const SlotId slot : touched) unshared[slot.value] = 0;
  touched.clear();
  return needed;
}

void KvManager::State::Grow(Sequence& sequence, const Growth& growth) {
  CACHALOT_CHECK(!sequence.keeps_tokens() || growth.ids.size() == growth.tokens);
  const uint64_t end = BlocksFor(sequence.length + growth.tokens, geometry.block_tokens);
  CACHALOT_CHECK(end <= kMaxSequenceBlocks && (sequence.above.end == 0 || end <= sequence.above.low));
  uint32_t full_slots = 0;
  for (uint32_t group = 0; group < groups(); ++group) {
    PageTable& table = sequence.tables[group];
    uint32_t taken = 0;
    if (WritesTail(sequence, growth.tokens) && pool.references(table.tail()) > 1) {
      copies.push_back(table.UnshareTail());
      moved.push_back({&table, copies.back().from});
      ++taken;
    }
    for (; table.end_block() < end; ++taken) table.Append();
    if (geometry.windows[group] == 0) full_slots += taken;
  }
  NoteScrub(sequence, sequence.length / geometry.block_tokens);
  if (sequence.keeps_tokens()) sequence.unsealed.insert(sequence.unsealed.end(), growth.ids.begin(), growth.ids.end());
  sequence.step_tokens = growth.tokens;
  grown.push_back(&sequence);
  full_slots_taken.push_back(full_slots);
}

// In the reverse order of Grow, so that the free list too is as it was.
void KvManager::State::UndoGrow(Sequence& sequence) {
  const uint64_t end = BlocksFor(sequence.length, geometry.block_tokens);
  for (auto table = sequence.tables.rbegin(); table != sequence.tables.rend(); ++table) {
    while (table->end_block() > end) table->PopBack();
    if (moved.empty() || moved.back().table != &*table) continue;
    table->ShareTailAgain(moved.back().original);
    moved.pop_back();
  }
  if (sequence.keeps_tokens()) sequence.unsealed.resize(sequence.unsealed.size() - sequence.step_tokens);
}

void KvManager::State::KeepGrowth(Sequence& sequence) {
  sequence.length += sequence.step_tokens;
  if (sequence.cursor != nullptr) {
    SealWhole(sequence);
    OpenTail(sequence);
  } else {
    SealUnindexed(sequence);
  }
  DropWindows(sequence, sequence.length);
}

void KvManager::State::SealWhole(Sequence& sequence) {
  const uint32_t block_tokens = geometry.block_tokens;
  const uint64_t end = sequence.length / block_tokens;
  if (sequence.cursor->end_block() == end) return;
  CloseOpen(sequence);
  const uint64_t first = sequence.cursor->end_block();
  size_t used = 0;
  for (uint64_t block = first; block < end; ++block, used += block_tokens) {
    const std::span<const TokenId> tokens(sequence.unsealed.data() + used, block_tokens);
    const PrefixKey key = index->KeyOf(sequence.scope, block, tokens);
    for (uint32_t g = 0; g < groups(); ++g) block_slots[g] = sequence.SlotOf(g, static_cast<uint32_t>(block));
    PrefixNode* const node =
        index->Seal(*sequence.cursor, key, block_slots, InfoOf(sequence, (block + 1) * block_tokens));
    for (uint32_t g = 0; g < groups(); ++g) {
      if (block_slots[g] != kNoSlot) sequence.tables[g].Replace(static_cast<uint32_t>(block), SlotId(node->slots[g]));
    }
    SealInShadow(sequence, block, node->chain);
    index->Enter(*node);
    index->Leave(*std::exchange(sequence.cursor, node));
  }
  sequence.unsealed.erase(sequence.unsealed.begin(), sequence.unsealed.begin() + static_cast<ptrdiff_t>(used));
  NoteScrub(sequence, first);  // others' equal blocks, which took the place of its own
}

// What was announced is written: the rest of it can be copied from this sequence's tail, and all of it continued.
void KvManager::State::OpenTail(Sequence& sequence) {
  if (sequence.announced == 0 || sequence.length < sequence.announced) return;
  const bool unfilled = sequence.length == sequence.announced && !sequence.unsealed.empty();
  if (unfilled && !sequence.ahead.empty() && sequence.ahead.back()->writer == sequence.id) {
    sequence.open = sequence.ahead.back();
    index->Open(*sequence.open);
  }
  index->MarkResume(*sequence.cursor, WishOf(sequence));
  sequence.announced = 0;
  sequence.ahead.clear();
}

void KvManager::State::DropWindows(Sequence& sequence, uint64_t length) {
  for (uint32_t group = 0; group < groups(); ++group) {
    PageTable& table = sequence.tables[group];
    const uint64_t first = FirstBlockKept(geometry.windows[group], length, geometry.block_tokens);
    while (table.count() > 0 && table.first_block() < first) {
      const uint32_t slot = table.slot(table.first_block());
      table.DropBefore(table.first_block() + 1);
      if (index != nullptr) index->OnReleased(slot);
    }
  }
}

void KvManager::State::EndStep() {
  for (Sequence* sequence : grown) {
    sequence->step_tokens = 0;
    sequence->in_step = false;
  }
  grown.clear();
  copies.clear();
  moved.clear();
  full_slots_taken.clear();
  open = false;
  CACHALOT_DCHECK(SoundAfterStep());
}

bool KvManager::State::SoundAfterStep() {
  constexpr uint64_t kSlotsPerStep = 1024;
  return steps++ % (pool.slots() / kSlotsPerStep + 1) != 0 || Violations(Snapshot()).empty();
}

}  // namespace cachalot::kv
