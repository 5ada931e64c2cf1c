#include "kv/kv_manager.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "kv/kv_snapshot.h"
#include "kv/page_table.h"
#include "kv/slot_pool.h"

namespace cachalot::kv {
namespace {

struct Sequence {
  SequenceId id;
  uint64_t length = 0;
  uint32_t step_tokens = 0;  // of the open reservation
  bool in_step = false;
  std::vector<PageTable> tables;  // one per layer group
};

// A tail that the open reservation moved to a slot of its own.
struct MovedTail {
  const PageTable* table;
  SlotId original;
};

}  // namespace

struct KvManager::State {
  explicit State(KvGeometry g) : geometry(std::move(g)), pool(geometry.slots), unshared(geometry.slots, 0) {}

  KvGeometry geometry;
  SlotPool pool;
  std::vector<std::unique_ptr<Sequence>> live;   // ascending by id
  std::vector<std::unique_ptr<Sequence>> spare;  // freed: empty tables that keep their capacity
  uint64_t next_id = 1;

  bool open = false;             // whether a reservation is
  std::vector<Sequence*> grown;  // by it, in order
  std::vector<BlockCopy> copies;
  std::vector<MovedTail> moved;  // one per copy

  std::vector<uint32_t> unshared;  // scratch of SlotsNeeded, by slot: references that a step will move away
  std::vector<SlotId> touched;     // scratch: where it is not zero

  auto Find(SequenceId id) const {
    return std::lower_bound(live.begin(), live.end(), id,
                            [](const auto& s, SequenceId wanted) { return s->id < wanted; });
  }

  Sequence& At(SequenceId id) const {
    const auto found = Find(id);
    CACHALOT_CHECK(found != live.end() && (*found)->id == id);
    return **found;
  }

  uint64_t FreshBlocks(const Sequence& sequence, uint32_t tokens) const {
    return BlocksFor(sequence.length + tokens, geometry.block_tokens) -
           BlocksFor(sequence.length, geometry.block_tokens);
  }

  bool WritesTail(const Sequence& sequence, uint32_t tokens) const {
    return tokens > 0 && sequence.length % geometry.block_tokens != 0;
  }

  // Exact also where several sequences leave the same tail: the last one to own it keeps it.
  uint64_t SlotsNeeded(std::span<const Growth> growth) {
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

  void Grow(Sequence& sequence, uint32_t tokens) {
    const uint64_t end = BlocksFor(sequence.length + tokens, geometry.block_tokens);
    CACHALOT_CHECK(end <= kMaxSequenceBlocks);
    for (PageTable& table : sequence.tables) {
      if (WritesTail(sequence, tokens) && pool.references(table.tail()) > 1) {
        copies.push_back(table.UnshareTail());
        moved.push_back({&table, copies.back().from});
      }
      while (table.end_block() < end) table.Append();
    }
    sequence.step_tokens = tokens;
    grown.push_back(&sequence);
  }

  // In the reverse order of Grow, so that the free list too is as it was.
  void UndoGrow(Sequence& sequence) {
    const uint64_t end = BlocksFor(sequence.length, geometry.block_tokens);
    for (auto table = sequence.tables.rbegin(); table != sequence.tables.rend(); ++table) {
      while (table->end_block() > end) table->PopBack();
      if (moved.empty() || moved.back().table != &*table) continue;
      table->ShareTailAgain(moved.back().original);
      moved.pop_back();
    }
  }

  void KeepGrowth(Sequence& sequence) {
    sequence.length += sequence.step_tokens;
    for (size_t group = 0; group < sequence.tables.size(); ++group) {
      sequence.tables[group].DropBefore(
          FirstBlockKept(geometry.windows[group], sequence.length, geometry.block_tokens));
    }
  }

  void EndStep() {
    for (Sequence* sequence : grown) {
      sequence->step_tokens = 0;
      sequence->in_step = false;
    }
    grown.clear();
    copies.clear();
    moved.clear();
    open = false;
  }

  KvSnapshot Snapshot() const;
};

StepReservation::StepReservation(StepReservation&& other) noexcept : manager_(std::exchange(other.manager_, nullptr)) {}

StepReservation::~StepReservation() {
  if (manager_ != nullptr) manager_->RollBack();
}

std::span<const BlockCopy> StepReservation::copies() const {
  CACHALOT_CHECK(manager_ != nullptr);
  return manager_->state_->copies;
}

void StepReservation::Commit() && {
  CACHALOT_CHECK(manager_ != nullptr);
  std::exchange(manager_, nullptr)->Commit();
}

KvManager::KvManager(KvGeometry geometry) : state_(std::make_unique<State>(std::move(geometry))) {
  CACHALOT_CHECK(state_->geometry.block_tokens > 0 && !state_->geometry.windows.empty());
}

KvManager::~KvManager() { CACHALOT_CHECK(!state_->open); }

const KvGeometry& KvManager::geometry() const { return state_->geometry; }

uint32_t KvManager::free_slots() const { return state_->pool.free_count(); }

SequenceId KvManager::Create() {
  State& state = *state_;
  std::unique_ptr<Sequence> sequence;
  if (state.spare.empty()) {
    sequence = std::make_unique<Sequence>();
    sequence->tables.reserve(state.geometry.windows.size());
    for (size_t i = 0; i < state.geometry.windows.size(); ++i) sequence->tables.emplace_back(state.pool);
  } else {
    sequence = std::move(state.spare.back());
    state.spare.pop_back();
  }
  sequence->id = SequenceId(state.next_id++);
  sequence->length = 0;
  state.live.push_back(std::move(sequence));
  return state.live.back()->id;
}

SequenceId KvManager::Fork(SequenceId parent_id) {
  CACHALOT_CHECK(!state_->open);
  const Sequence& parent = state_->At(parent_id);
  Sequence& child = state_->At(Create());
  child.length = parent.length;
  for (size_t group = 0; group < child.tables.size(); ++group) child.tables[group].ShareAll(parent.tables[group]);
  return child.id;
}

void KvManager::Free(SequenceId id) {
  CACHALOT_CHECK(!state_->open);
  Sequence& sequence = state_->At(id);
  for (PageTable& table : sequence.tables) table.Clear();
  const auto at = state_->live.begin() + (state_->Find(id) - state_->live.cbegin());
  state_->spare.push_back(std::move(*at));
  state_->live.erase(at);
}

uint64_t KvManager::Length(SequenceId sequence) const { return state_->At(sequence).length; }

uint32_t KvManager::SlotsToGrow(SequenceId sequence, uint32_t tokens) const {
  CACHALOT_CHECK(!state_->open);
  const Growth growth{sequence, tokens};
  const uint64_t needed = state_->SlotsNeeded({&growth, 1});
  return static_cast<uint32_t>(std::min<uint64_t>(needed, UINT32_MAX));
}

Result<StepReservation> KvManager::Reserve(std::span<const Growth> growth) {
  State& state = *state_;
  CACHALOT_CHECK(!state.open);
  const uint64_t needed = state.SlotsNeeded(growth);
  if (needed > state.pool.free_count()) {
    return Overloaded(fmt::format("KV pool: the step needs {} slots; {} of {} are free", needed,
                                  state.pool.free_count(), state.pool.slots()));
  }
  state.open = true;
  for (const Growth& g : growth) {
    Sequence& sequence = state.At(g.sequence);
    CACHALOT_CHECK(!sequence.in_step);
    sequence.in_step = true;
    state.Grow(sequence, g.tokens);
  }
  return StepReservation(this);
}

PageTableRef KvManager::Pages(SequenceId sequence, uint32_t group) const {
  const Sequence& found = state_->At(sequence);
  CACHALOT_CHECK(group < found.tables.size());
  return found.tables[group].Ref();
}

void KvManager::Commit() {
  for (Sequence* sequence : state_->grown) state_->KeepGrowth(*sequence);
  state_->EndStep();
  CACHALOT_DCHECK(Violations(Snapshot()).empty());
}

void KvManager::RollBack() {
  for (auto sequence = state_->grown.rbegin(); sequence != state_->grown.rend(); ++sequence) {
    state_->UndoGrow(**sequence);
  }
  state_->EndStep();
  CACHALOT_DCHECK(Violations(Snapshot()).empty());
}

KvSnapshot KvManager::Snapshot() const { return state_->Snapshot(); }

KvSnapshot KvManager::State::Snapshot() const {
  KvSnapshot snapshot;
  snapshot.geometry = geometry;
  snapshot.references.reserve(pool.slots());
  for (uint32_t slot = 0; slot < pool.slots(); ++slot) snapshot.references.push_back(pool.references(SlotId(slot)));
  snapshot.free.assign(pool.free_list().begin(), pool.free_list().end());
  for (const BlockCopy& copy : copies) snapshot.reserved.push_back(copy.to);
  for (const auto& sequence : live) {
    KvSnapshot::Sequence& out = snapshot.sequences.emplace_back();
    out.id = sequence->id;
    out.length = sequence->length;
    out.reserved_tokens = sequence->step_tokens;
    const uint64_t committed_end = BlocksFor(sequence->length, geometry.block_tokens);
    for (const PageTable& table : sequence->tables) {
      const PageTableRef pages = table.Ref();
      KvSnapshot::Table& listed = out.tables.emplace_back();
      listed.first_block = pages.first_block;
      for (uint32_t i = 0; i < pages.slot_count; ++i) {
        listed.slots.push_back(SlotId(pages.slots[i]));
        if (pages.first_block + i >= committed_end) snapshot.reserved.push_back(SlotId(pages.slots[i]));
      }
    }
  }
  return snapshot;
}

}  // namespace cachalot::kv
