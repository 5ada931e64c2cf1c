// The ledger: every byte of the pool, by what it is used for.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/kv_layout.h"
#include "kv/kv_state.h"

namespace cachalot::kv {
namespace {

// What sequences have in one slot. Places count from the beginning of its block.
struct Holding {
  uint32_t group = 0;
  uint32_t sequences = 0;
  uint32_t live_from = UINT32_MAX;  // the first that some sequence still reads
  uint32_t written_to = 0;
  uint32_t reserved_to = 0;  // by the open step
  bool filling = false;      // a copy of the open step, or a load, goes there
};

void NoteSequence(const KvGeometry& geometry, const Sequence& sequence, std::vector<Holding>* slots) {
  const uint64_t block_tokens = geometry.block_tokens;
  for (uint32_t group = 0; group < sequence.tables.size(); ++group) {
    const PageTableRef pages = sequence.tables[group].Ref();
    const uint64_t window = geometry.windows[group];
    const uint64_t length = sequence.length;
    const uint64_t visible = window == 0 || length < window ? 0 : length - window + 1;
    for (uint64_t i = 0; i < pages.slot_count; ++i) {
      Holding& slot = (*slots)[pages.slots[i]];
      const uint64_t begin = (pages.first_block + i) * block_tokens;
      const auto place = [&](uint64_t position) {
        return static_cast<uint32_t>(std::clamp(position, begin, begin + block_tokens) - begin);
      };
      slot.group = group;
      ++slot.sequences;
      slot.live_from = std::min(slot.live_from, place(visible));
      slot.written_to = std::max(slot.written_to, place(length));
      slot.reserved_to = std::max(slot.reserved_to, place(length + sequence.step_tokens));
    }
  }
}

void NoteAbove(const KvGeometry& geometry, const Sequence& sequence, std::vector<Holding>* slots) {
  const uint64_t block_tokens = geometry.block_tokens, end = sequence.above.end;
  for (uint32_t group = 0; group < sequence.above.tables.size(); ++group) {
    const PageTableRef pages = sequence.above.tables[group].Ref();
    const uint64_t window = geometry.windows[group];
    const uint64_t visible = window == 0 || end < window ? 0 : end - window + 1;
    for (uint64_t i = 0; i < pages.slot_count; ++i) {
      const uint64_t begin = (BlocksFor(end, geometry.block_tokens) - 1 - i) * block_tokens;
      const auto place = [&](uint64_t position) {
        return static_cast<uint32_t>(std::clamp(position, begin, begin + block_tokens) - begin);
      };
      const uint32_t written_to = place(end);
      (*slots)[pages.slots[i]] = {group, 1, place(visible), written_to, written_to, true};
    }
  }
}

}  // namespace

KvLedger KvManager::Ledger(const KvLayout& layout) const {
  const State& state = *state_;
  CACHALOT_CHECK(layout.groups.size() == state.groups());
  std::vector<Holding> slots(state.pool.slots());
  for (const auto& sequence : state.live) {
    NoteSequence(state.geometry, *sequence, &slots);
    NoteAbove(state.geometry, *sequence, &slots);
  }
  if (state.open) {
    for (const BlockCopy& copy : state.copies) slots[copy.to.value].filling = true;
  }
  KvLedger ledger{.total_bytes = slots.size() * layout.slot_bytes,
                  .transit_bytes = state.pool.deferred_count() * layout.slot_bytes,
                  .free_bytes = state.pool.free_count() * layout.slot_bytes};
  for (uint32_t i = 0; i < slots.size(); ++i) {
    if (state.pool.references(SlotId(i)) == 0) continue;
    Holding& slot = slots[i];
    const bool idle = slot.sequences == 0;
    if (idle) {
      const PrefixIndex::Listing& listing = state.index->listing(i);
      slot = {.group = listing.group, .live_from = 0, .written_to = listing.tokens};
    }
    const uint64_t used = layout.groups[slot.group].used_bytes, token = used / state.geometry.block_tokens;
    const uint64_t written = (slot.written_to - std::min(slot.written_to, slot.live_from)) * token;
    const uint64_t reserved = (slot.reserved_to - std::min(slot.reserved_to, slot.written_to)) * token;
    (idle ? ledger.idle_bytes : slot.filling ? ledger.transit_bytes : ledger.live_bytes) += written;
    if (slot.sequences > 1) ledger.shared_bytes += written;
    ledger.reserved_bytes += reserved;
    ledger.waste_bytes += used - written - reserved;
    ledger.padding_bytes += layout.slot_bytes - used;
  }
  return ledger;
}

}  // namespace cachalot::kv
