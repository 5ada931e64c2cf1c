// Blocks that go to a lower tier, and that come from one instead of being computed.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kv/kv_snapshot.h"
#include "kv/kv_state.h"

namespace cachalot::kv {

ListedBlocks KvManager::Listed(const PrefixScope& scope, std::span<const TokenId> tokens) const {
  ListedBlocks listed;
  if (state_->index != nullptr) state_->index->List(scope, tokens, &listed);
  return listed;
}

void KvManager::BeginLoad(SequenceId id, uint64_t end) {
  State& state = *state_;
  Sequence& sequence = state.At(id);
  CACHALOT_CHECK(!state.open && sequence.above.end == 0 && sequence.cursor != nullptr && end > sequence.length);
  sequence.above.end = end;
  sequence.above.low = static_cast<uint32_t>(BlocksFor(end, state.geometry.block_tokens));
  if (!sequence.above.tables.empty()) return;
  for (const uint32_t window : state.geometry.windows) {
    sequence.above.tables.emplace_back(state.pool, window == 0 ? SlotUse::kFull : SlotUse::kSliding);
  }
}

uint64_t KvManager::State::FirstAbove(const Sequence& sequence, uint32_t group) const {
  return FirstBlockKept(geometry.windows[group], sequence.above.end, geometry.block_tokens);
}

std::optional<std::vector<LoadCell>> KvManager::ClaimLoad(SequenceId id, uint64_t first) {
  State& state = *state_;
  Sequence& sequence = state.At(id);
  BlocksAbove& above = sequence.above;
  CACHALOT_CHECK(!state.open && above.end > 0 && first < above.low);
  CACHALOT_CHECK(first >= BlocksFor(sequence.length, state.geometry.block_tokens));
  const auto begin_of = [&](uint32_t group) {
    return std::min<uint64_t>(std::max(first, state.FirstAbove(sequence, group)), above.low);
  };
  uint64_t needed = 0;
  for (uint32_t group = 0; group < state.groups(); ++group) needed += above.low - begin_of(group);
  if (!state.MakeFree(needed)) return std::nullopt;

  std::vector<LoadCell> cells;
  cells.reserve(needed);
  for (uint32_t group = 0; group < state.groups(); ++group) {
    for (uint64_t block = above.low; block > begin_of(group); --block) {
      above.tables[group].Append();
      const SlotId slot = above.tables[group].tail();
      cells.push_back({static_cast<uint32_t>(block - 1), group, slot});
      if (sequence.hints.scrub) state.pool.ScrubWhenFree(slot);
    }
  }
  above.low = static_cast<uint32_t>(first);
  std::ranges::sort(cells, {}, [](const LoadCell& cell) { return std::pair(cell.block, cell.group); });
  return cells;
}

uint32_t KvManager::DropLoad(SequenceId id, uint64_t block) {
  State& state = *state_;
  CACHALOT_CHECK(!state.open);
  const uint32_t in_use = full_slots_in_use();
  state.DropAbove(state.At(id), block);
  return in_use - full_slots_in_use();
}

void KvManager::MoveLoad(SequenceId from_id, SequenceId to_id) {
  State& state = *state_;
  Sequence &from = state.At(from_id), &to = state.At(to_id);
  CACHALOT_CHECK(!state.open && from.above.end > 0 && from.unsealed.empty());
  CACHALOT_CHECK(to.above.end == 0 && to.length == 0 && to.announced == 0);
  std::swap(from.above, to.above);
  for (const PageTable& table : to.above.tables) {
    for (uint32_t i = 0; to.hints.scrub && i < table.count(); ++i) state.pool.ScrubWhenFree(SlotId(table.slot(i)));
  }
  state.Free(from);
}

void KvManager::State::DropAbove(Sequence& sequence, uint64_t block) {
  BlocksAbove& above = sequence.above;
  if (above.end == 0) return;
  const uint64_t end = BlocksFor(above.end, geometry.block_tokens);
  block = std::clamp<uint64_t>(block, above.low, end);
  for (PageTable& table : above.tables) {
    while (table.count() > end - block) table.PopBack();
  }
  above.low = static_cast<uint32_t>(block);
}

void KvManager::BeginCopyIn(SlotId slot) { state_->pool.BeginCopyIn(slot); }
void KvManager::EndCopyIn(SlotId slot) { state_->pool.EndCopyIn(slot); }

void KvManager::EndLoad(SequenceId id, std::span<const TokenId> ids) {
  JoinLoad(id, ids);
  State& state = *state_;
  state.SealWhole(state.At(id));
  state.OpenTail(state.At(id));
  CACHALOT_DCHECK(state.SoundAfterStep());
}

void KvManager::JoinLoad(SequenceId id, std::span<const TokenId> ids) {
  State& state = *state_;
  Sequence& sequence = state.At(id);
  BlocksAbove& above = sequence.above;
  const uint32_t block_tokens = state.geometry.block_tokens;
  const auto end = static_cast<uint32_t>(BlocksFor(above.end, block_tokens));
  CACHALOT_CHECK(!state.open && above.end > 0 && sequence.length + ids.size() == above.end);
  CACHALOT_CHECK(ids.empty() ? above.low == end : sequence.length == uint64_t{above.low} * block_tokens);
  state.DropWindows(sequence, above.end);
  for (uint32_t group = 0; group < state.groups() && !ids.empty(); ++group) {
    PageTable& table = sequence.tables[group];
    const auto first = static_cast<uint32_t>(std::max<uint64_t>(above.low, state.FirstAbove(sequence, group)));
    if (table.count() == 0) table.StartAt(first);
    for (uint32_t block = first; block < end; ++block) {
      table.AppendShared(SlotId(above.tables[group].slot(end - 1 - block)));
    }
    above.tables[group].Clear();
  }
  sequence.length = std::exchange(above.end, 0);
  sequence.unsealed.insert(sequence.unsealed.end(), ids.begin(), ids.end());
}

void KvManager::Discard(SequenceId id, uint64_t from) {
  State& state = *state_;
  Sequence& sequence = state.At(id);
  const uint64_t end = from / state.geometry.block_tokens;
  CACHALOT_CHECK(from % state.geometry.block_tokens == 0 && end >= sequence.cursor->end_block());
  if (sequence.in_step) {
    state.UndoGrow(sequence);
    std::erase(state.grown, &sequence);
    sequence.step_tokens = 0;
    sequence.in_step = false;
  }
  for (PageTable& table : sequence.tables) {
    while (table.count() > 0 && table.end_block() > end) table.PopBack();
  }
  sequence.unsealed.resize(sequence.unsealed.size() - (sequence.length - from));
  sequence.length = from;
  state.Free(sequence);
}

}  // namespace cachalot::kv
