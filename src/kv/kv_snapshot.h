// KvSnapshot is a copy of all KV accounting; Violations lists what is wrong with one.
// Threads:   plain data and a pure function.
// Ownership: none.
// Invariant: Violations of a snapshot taken between any two calls of a KvManager is empty.
// Cost:      O(slots + page-table entries).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "kv/geometry.h"
#include "kv/slot_transfers.h"

namespace cachalot::kv {

struct KvSnapshot {
  struct Table {
    uint32_t first_block = 0;
    std::vector<SlotId> slots;
  };
  struct Sequence {
    SequenceId id;
    uint64_t length = 0;             // tokens committed
    uint64_t reserved_tokens = 0;    // of the open reservation
    std::vector<Table> tables;       // one per layer group
    uint64_t load_end = 0;           // tokens, of a load into its last blocks; 0: none
    uint32_t load_low = 0;           // the lowest block claimed
    std::vector<Table> above;        // the claimed blocks, one per layer group
    std::optional<uint32_t> cursor;  // id of the node that it has come to, where it is in the index
  };

  // A node of the prefix index; parents come before their children.
  struct Node {
    uint32_t id = 0;
    uint32_t parent = 0;  // id; the root's is its own
    uint32_t block = 0;
    uint32_t tokens = 0;
    uint32_t cursors = 0;
    SequenceId writer;
    bool resume = false;
    uint32_t covers = 0;
    bool ranked = false;
    bool loose = false;
    std::vector<uint32_t> slots;  // by group; kNoSlot where none is listed
  };

  KvGeometry geometry;
  std::vector<uint32_t> references;  // by slot
  std::vector<SlotId> free;          // the next slot taken is the last
  SlotTransfers transfers{0};
  std::vector<SlotId> reserved;     // taken by the open reservation; page tables name them already
  std::vector<Sequence> sequences;  // ascending by id
  std::vector<Node> nodes;          // empty without a prefix index; else the root comes first
  uint32_t idle = 0;                // slots that only the index holds, as the pool counts them
  uint32_t full_in_use = 0;         // slots of full attention that sequences hold, likewise
};

// One line per broken invariant; empty when all hold:
// every slot is either free, or held by a copy, or referenced, and as often as page tables name it and the index lists
// it; slots shared by sequences, or with the index, hold the same logical block of the same group; nodes count their
// cursors and the resume points that cover them; every idle slot can be evicted: its node is ranked, has listed
// children, is loose or covered; each table holds exactly the blocks that its length, its reservation and its window
// call for, and likewise those of a load, which nobody else refers to and the reservation stays below; reserved slots
// belong to growing sequences alone; no row of the reservation lands in a shared block.
std::vector<std::string> Violations(const KvSnapshot& snapshot);

}  // namespace cachalot::kv
