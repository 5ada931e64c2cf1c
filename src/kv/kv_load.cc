// Blocks that go to a lower tier, and that come from one instead of being computed.
#include <algorithm>

#include "base/check.h"
#include "kv/kv_state.h"

namespace cachalot::kv {

std::vector<uint32_t> KvManager::Listed(const PrefixScope& scope, std::span<const TokenId> tokens) const {
  std::vector<uint32_t> slots;
  if (state_->index != nullptr) state_->index->List(scope, tokens, &slots);
  return slots;
}

std::vector<LoadCell> KvManager::BeginLoad(SequenceId id, std::span<const TokenId> ids) {
  State& state = *state_;
  Sequence& sequence = state.At(id);
  const uint32_t block_tokens = state.geometry.block_tokens;
  CACHALOT_CHECK(!state.open && sequence.loading == 0 && sequence.cursor != nullptr && !ids.empty());
  CACHALOT_CHECK(sequence.length % block_tokens == 0 && ids.size() % block_tokens == 0);
  const uint64_t begin = sequence.length / block_tokens, end = begin + ids.size() / block_tokens;
  const auto first_of = [&](uint32_t group) {
    return std::max(begin, FirstBlockKept(state.geometry.windows[group], end * block_tokens, block_tokens));
  };
  uint64_t needed = 0;
  for (uint32_t group = 0; group < state.groups(); ++group) needed += end - first_of(group);
  if (!state.MakeFree(needed)) return {};

  std::vector<LoadCell> cells;
  cells.reserve(needed);
  state.DropWindows(sequence, end * block_tokens);
  for (uint32_t group = 0; group < state.groups(); ++group) {
    PageTable& table = sequence.tables[group];
    const auto first = static_cast<uint32_t>(first_of(group));
    if (table.count() == 0) table.StartAt(first);
    for (uint32_t block = first; block < end; ++block) {
      table.Append();
      cells.push_back({block, group, table.tail()});
    }
  }
  sequence.loading = static_cast<uint32_t>(ids.size());
  sequence.unsealed.assign(ids.begin(), ids.end());
  state.NoteScrub(sequence, begin);
  return cells;
}

void KvManager::EndLoad(SequenceId id) {
  State& state = *state_;
  Sequence& sequence = state.At(id);
  CACHALOT_CHECK(!state.open && sequence.loading > 0);
  sequence.length += std::exchange(sequence.loading, 0);
  state.SealWhole(sequence);
  state.OpenTail(sequence);
  CACHALOT_DCHECK(state.SoundAfterStep());
}

// The blocks that were to be loaded hold nothing. What left the windows for them is gone: such a sequence can only end.
void KvManager::State::AbandonLoad(Sequence& sequence) {
  if (sequence.loading == 0) return;
  sequence.loading = 0;
  sequence.unsealed.clear();
  const auto end = static_cast<uint32_t>(sequence.length / geometry.block_tokens);
  for (PageTable& table : sequence.tables) {
    while (table.count() > 0 && table.end_block() > end) table.PopBack();
  }
}

}  // namespace cachalot::kv
