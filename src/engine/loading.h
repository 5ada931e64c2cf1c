// Loading is KV on its way from lower tiers into one sequence, while what lies below it may be computed.
// Threads:   plain data of the engine thread.
// Ownership: owns the promise of its slots of sliding groups; the sequence is its owner's, the transfers are the
//            store's.
// Invariant: parts are claimed by the meeting and not there yet, the highest first; only the last may not have begun.
// Cost:      none.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/tier_rate.h"
#include "exec/device_memory.h"
#include "kv/kv_manager.h"
#include "kv/slot_budget.h"
#include "sched/meeting.h"
#include "sched/promotion.h"
#include "tier/host_tier.h"
#include "tier/transfer_engine.h"

namespace cachalot::engine {

// Requires that it is less than a century.
constexpr Nanos FromSeconds(double seconds) { return Nanos(static_cast<Nanos::rep>(seconds * 1e9)); }

// What lower tiers have of a history beyond its first blocks.
struct StoredBlocks {
  uint64_t first = 0;            // block
  uint64_t end = 0;              // tokens; 0: nothing
  std::vector<Digest> keys;      // of all blocks up to the end, the last of which may be sealed short
  std::vector<uint32_t> groups;  // of each block from `first` on, in the tier that has the most
  std::vector<TierId> tiers;     // likewise: which that is

  // Forgets what does not come before so many tokens.
  void CutTo(uint64_t tokens, uint32_t block_tokens);
};

// Copies from host memory that are under way.
struct HostCopy {
  std::vector<tier::HostPin> pins;
  exec::CopyTicket last{0};
  Nanos begun{0};
  uint64_t steps = 0;  // that had run by then
};

// Blocks that travel together, from one tier.
struct LoadPart {
  TierId tier = TierId::kDisk;
  uint64_t first = 0;  // block
  uint64_t blocks = 0;
  std::vector<kv::LoadCell> cells;           // where they go, by block, then by group
  std::optional<tier::TransferId> transfer;  // from the disk
  std::optional<HostCopy> copy;              // from host memory: ends before the slots are given up
  bool begun() const { return transfer || copy; }
};

struct Loading {
  Loading(StoredBlocks stored_in, const sched::MeetingView& view) : stored(std::move(stored_in)), meeting(view) {}

  SequenceId sequence{0};
  std::vector<TokenId> tokens;  // up to its end
  StoredBlocks stored;
  sched::Meeting meeting;
  std::deque<LoadPart> parts;
  std::map<std::pair<uint64_t, uint32_t>, tier::HostPin> pins;  // of host memory, by block and group, not begun yet
  kv::SlotPromise windows;                                      // of sliding groups, beside those of what is computed
  sched::PromotionId promotion{0};
  uint64_t part_bytes = 0;        // most of a part of several blocks
  Nanos front_at{0};              // from then on what is not there is computed
  Nanos deadline = Nanos::max();  // then what is under way is late
  bool then_more = false;         // once it has ended, what lies beyond is decided upon
  uint64_t failed_blocks = 0;
};

}  // namespace cachalot::engine
