// WayDown is what the engine has on its way to lower tiers: histories that are still to be written, runs that are being
// stored, and what was decided about both.
// Threads:   engine thread.
// Ownership: none.
// Invariant: those that somebody awaits are written first.
// Cost:      none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/prefix_scope.h"
#include "base/status.h"
#include "engine/decisions.h"
#include "engine/slot_copies.h"
#include "sched/return_rates.h"
#include "sched/write_behind.h"
#include "tier/transfer_engine.h"

namespace cachalot::engine {

// A history whose KV is to be written to disk.
struct Unwritten {
  PrefixScope scope;
  std::vector<TokenId> tokens;
  std::vector<Digest> keys;    // of its blocks that are to be written
  uint64_t prompt_tokens = 0;  // of them
  uint64_t done = 0;           // blocks
  WriteTicket ticket = 0;
  uint64_t decision = 0;  // its number
};

// What has become of a history that somebody awaits.
struct AwaitedWrite {
  WriteTicket ticket = 0;
  uint32_t under_way = 0;  // runs
  bool all_begun = false;
  std::optional<tier::TransferId> sync;
  Status status;  // the first failure
  bool ended = false;

  void Fail(const Status& why) {
    if (status.ok()) status = why;
  }
};

// How long the slots of what leaves the pool may be held for its copies to host memory.
enum class Haste : uint8_t {
  kNone,     // they are needed at once: it is dropped
  kAwaited,  // everybody waits for the copies
  kAhead,    // nobody needs them yet
  kWished,   // nobody does, and a session is suspended: it goes to host memory whatever that costs
};

struct StoredRun {
  tier::TransferId id;
  DownOwner owner;
};

struct WayDown {
  // 0: no limit.
  explicit WayDown(uint64_t bytes_per_second)
      : budget(bytes_per_second == 0 ? std::nullopt : std::optional(bytes_per_second), bytes_per_second) {}

  std::deque<Unwritten> unwritten;  // those that somebody awaits, then the oldest first
  std::vector<StoredRun> storing;
  std::vector<AwaitedWrite> awaited;
  WriteTicket last_ticket = 0;
  sched::WriteBudget budget;
  sched::ReturnRates returns;
  Nanos budget_due{0};         // when it is asked again
  bool store_is_full = false;  // until something that is under way ends
  Nanos retry_store_at{0};
  Haste haste = Haste::kNone;  // of whoever evicts now
  Latest<DownRecord> decisions;

  // Null: nobody awaits it.
  AwaitedWrite* AwaitedOf(WriteTicket ticket) {
    const auto found = std::ranges::find(awaited, ticket, &AwaitedWrite::ticket);
    return found == awaited.end() ? nullptr : &*found;
  }
  void EndAwaited(WriteTicket ticket, const Status& status) {
    AwaitedWrite* const write = AwaitedOf(ticket);
    if (write == nullptr) return;
    --write->under_way;
    write->Fail(status);
  }
  // It is known what became of these blocks.
  void Count(uint64_t decision, uint64_t sched::DownOutcome::*what, uint64_t blocks) {
    if (DownRecord* const record = decisions.Find(decision)) record->decision.outcome.*what += blocks;
  }
  // Of blocks that were on their way.
  void EndWrite(const DownOwner& owner, const Status& status) {
    using Outcome = sched::DownOutcome;
    Count(owner.decision, status.ok() ? &Outcome::written_blocks : &Outcome::failed_blocks, owner.blocks);
    EndAwaited(owner.ticket, status);
  }
  // No more than so many of its blocks are to be written.
  void Cut(Unwritten& item, uint64_t blocks) {
    const uint64_t kept = std::max(blocks, item.done), all = std::max<uint64_t>(kept, item.keys.size());
    Count(item.decision, &sched::DownOutcome::skipped_blocks, all - kept);
    item.keys.resize(std::min<uint64_t>(item.keys.size(), blocks));
    item.done = std::min<uint64_t>(item.done, item.keys.size());
  }

  bool empty() const { return unwritten.empty() && storing.empty() && awaited.empty(); }
};

}  // namespace cachalot::engine
