// KvSnapshot is a copy of all KV accounting; Violations lists what is wrong with one.
// Threads:   plain data and a pure function.
// Ownership: none.
// Invariant: Violations of a snapshot taken between any two calls of a KvManager is empty.
// Cost:      O(slots + page-table entries).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "kv/geometry.h"

namespace cachalot::kv {

struct KvSnapshot {
  struct Table {
    uint32_t first_block = 0;
    std::vector<SlotId> slots;
  };
  struct Sequence {
    SequenceId id;
    uint64_t length = 0;           // tokens committed
    uint64_t reserved_tokens = 0;  // of the open reservation
    std::vector<Table> tables;     // one per layer group
  };

  KvGeometry geometry;
  std::vector<uint32_t> references;  // by slot
  std::vector<SlotId> free;          // the next slot taken is the last
  std::vector<SlotId> reserved;      // taken by the open reservation; page tables name them already
  std::vector<Sequence> sequences;   // ascending by id
};

// One line per broken invariant; empty when all hold:
// every slot is either free or referenced, and as often as page tables name it; slots shared by sequences hold the same
// logical block of the same group; each table holds exactly the blocks that its length, its reservation and its window
// call for; reserved slots belong to growing sequences alone; no row of the reservation lands in a shared block.
std::vector<std::string> Violations(const KvSnapshot& snapshot);

}  // namespace cachalot::kv
