// SessionFile is the state of the one session that is being saved to a file or restored from one.
// Threads:   plain data of the engine thread.
// Ownership: names the sequence that holds the KV meanwhile.
// Invariant: one at a time, as the archive has one file open.
// Cost:      none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/prefix_scope.h"
#include "engine/session.h"
#include "kv/kv_manager.h"
#include "kv/slot_budget.h"

namespace cachalot::engine {

struct SessionFile {
  SessionCommandId command;
  bool save = false;
  SequenceId sequence{0};  // holds the KV that is saved, or that is being filled; 0: there is none
  uint64_t blocks = 0;
  uint64_t next_block = 0;
  std::vector<std::byte> tail;  // KV of the last of them where that is short, of all groups: no sequence holds it
  bool finishing = false;       // all of it was given to the archive

  // Of one that is restored.
  CacheSalt salt;
  uint32_t parts = 0;           // still to come
  std::vector<TokenId> tokens;  // whose KV is filled in
  kv::SlotPromise windows;
  std::vector<kv::LoadCell> cells;  // by block, then by group
  uint64_t filled = 0;              // of them
};

}  // namespace cachalot::engine
