#include "kv/ledger.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace cachalot::kv {
namespace {

// What is known of one slot.
struct Holding {
  uint32_t group = 0;
  uint32_t sequences = 0;
  bool listed = false;
  uint64_t live_from = UINT64_MAX;  // positions: the first that some sequence still reads
  uint64_t written_to = 0;          // end of what is written
  uint64_t reserved_to = 0;         // end of what the open step writes
  uint64_t begin = 0;               // of the block
};

void NoteSequence(const KvSnapshot& snapshot, const KvSnapshot::Sequence& sequence, std::vector<Holding>* slots) {
  const uint64_t block_tokens = snapshot.geometry.block_tokens;
  for (uint32_t group = 0; group < sequence.tables.size(); ++group) {
    const KvSnapshot::Table& table = sequence.tables[group];
    const uint64_t window = snapshot.geometry.windows[group];
    const uint64_t visible = window == 0 || sequence.length < window ? 0 : sequence.length - window + 1;
    for (size_t i = 0; i < table.slots.size(); ++i) {
      Holding& slot = (*slots)[table.slots[i].value];
      slot.group = group;
      slot.begin = (table.first_block + i) * block_tokens;
      const uint64_t end = slot.begin + block_tokens;
      ++slot.sequences;
      slot.live_from = std::min(slot.live_from, std::max(visible, slot.begin));
      slot.written_to = std::max(slot.written_to, std::min(end, sequence.length));
      slot.reserved_to = std::max(slot.reserved_to, std::min(end, sequence.length + sequence.reserved_tokens));
    }
  }
}

}  // namespace

KvLedger LedgerOf(const KvSnapshot& snapshot, const KvLayout& layout) {
  const uint64_t block_tokens = snapshot.geometry.block_tokens;
  CACHALOT_CHECK(layout.groups.size() == snapshot.geometry.windows.size());
  std::vector<Holding> slots(snapshot.geometry.slots);
  for (const KvSnapshot::Sequence& sequence : snapshot.sequences) NoteSequence(snapshot, sequence, &slots);
  for (const KvSnapshot::Node& node : snapshot.nodes) {
    for (uint32_t group = 0; group < node.slots.size(); ++group) {
      if (node.slots[group] == kNoSlot) continue;
      Holding& slot = slots[node.slots[group]];
      slot.group = group;
      slot.listed = true;
      slot.begin = node.block * block_tokens;
      slot.written_to = std::max(slot.written_to, slot.begin + node.tokens);
    }
  }
  KvLedger ledger;
  ledger.total_bytes = snapshot.geometry.slots * layout.slot_bytes;
  for (const Holding& slot : slots) {
    if (slot.sequences == 0 && !slot.listed) {
      ledger.free_bytes += layout.slot_bytes;
      continue;
    }
    const uint64_t used = layout.groups[slot.group].used_bytes, token = used / block_tokens;
    const uint64_t written_from = slot.sequences == 0 ? slot.begin : std::min(slot.live_from, slot.written_to);
    const uint64_t written = (slot.written_to - std::min(slot.written_to, written_from)) * token;
    const uint64_t reserved = (slot.reserved_to - std::min(slot.reserved_to, slot.written_to)) * token;
    (slot.sequences == 0 ? ledger.idle_bytes : ledger.live_bytes) += written;
    if (slot.sequences > 1) ledger.shared_bytes += written;
    ledger.reserved_bytes += reserved;
    ledger.waste_bytes += used - written - reserved;
    ledger.padding_bytes += layout.slot_bytes - used;
  }
  return ledger;
}

}  // namespace cachalot::kv
