// KvLedger says what every byte of the pool is used for.
// Threads:   plain data and a pure function.
// Ownership: none.
// Invariant: the parts add up to the pool's bytes.
// Cost:      O(slots + page-table entries).
#pragma once

#include <cstdint>

#include "base/kv_layout.h"
#include "kv/kv_snapshot.h"

namespace cachalot::kv {

struct KvLedger {
  uint64_t total_bytes = 0;     // slots * slot_bytes
  uint64_t live_bytes = 0;      // tokens that a sequence may still read; what several share counts once
  uint64_t shared_bytes = 0;    // of them: held by more than one sequence
  uint64_t idle_bytes = 0;      // tokens that only the index holds
  uint64_t reserved_bytes = 0;  // places of the open step's rows
  uint64_t waste_bytes = 0;     // places in blocks that hold no token, or one that left its window
  uint64_t padding_bytes = 0;   // that slots have beyond their group's blocks
  uint64_t free_bytes = 0;

  uint64_t Sum() const { return live_bytes + idle_bytes + reserved_bytes + waste_bytes + padding_bytes + free_bytes; }
};

// Requires a snapshot of a manager with this layout's geometry.
KvLedger LedgerOf(const KvSnapshot& snapshot, const KvLayout& layout);

}  // namespace cachalot::kv
