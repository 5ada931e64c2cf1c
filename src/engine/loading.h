// Loading is KV on its way from lower tiers into one sequence, while what lies below it may be computed; where it comes
// layer after layer, what lies above it may be as well.
// Threads:   plain data of the engine thread.
// Ownership: owns the promise of its slots of sliding groups; the sequence is its owner's, the transfers are the
//            store's.
// Invariant: parts are claimed by the meeting and not there yet, the highest first; only the last may not have begun.
//            What copies read and write outlives them, whatever becomes of the load: see slot_copies.h.
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
#include "exec/executor.h"
#include "kv/geometry.h"
#include "kv/kv_manager.h"
#include "kv/slot_budget.h"
#include "sched/load_or_recompute.h"
#include "sched/meeting.h"
#include "sched/promotion.h"
#include "tier/host_tier.h"
#include "tier/transfer_engine.h"

namespace cachalot::engine {

// Requires that it is less than a century.
constexpr Nanos FromSeconds(double seconds) { return Nanos(static_cast<Nanos::rep>(seconds * 1e9)); }

inline constexpr uint64_t kPartsToMeet = 16;  // of a load that is met: the front takes the place of those not begun

// What lower tiers have of a history beyond its first blocks.
struct StoredBlocks {
  uint64_t first = 0;        // block
  uint64_t end = 0;          // tokens; 0: nothing
  std::vector<Digest> keys;  // of all blocks up to the end, the last of which may be sealed short

  // Of each block from `first` on: the groups that tiers have, and the furthest tier that is needed for those of them
  // that are read from the end on.
  std::vector<uint32_t> in_host, on_disk;
  std::vector<TierId> tiers;

  std::vector<uint32_t> groups() const;  // in either
  std::span<const uint32_t> on(TierId tier) const { return tier == TierId::kHost ? in_host : on_disk; }
  // Forgets what does not come before so many tokens.
  void CutTo(uint64_t tokens, const kv::KvGeometry& geometry);
};

// Tokens that came from lower tiers, by tier.
struct LoadedTokens {
  uint64_t host = 0;
  uint64_t disk = 0;
  uint64_t all() const { return host + disk; }
};

// Copies into the slots of a part.
struct Arrival {
  std::vector<exec::CopyTicket> layers;  // of each layer; one ticket: they come together
  Status status;                         // not OK: there is nothing to copy from
  uint64_t bytes = 0;
  Nanos begun{0};
  uint64_t steps = 0;  // that had run by then
  bool observed = false;
};

// Blocks that travel together, from one tier; what the nearer one has of them comes with them.
struct LoadPart {
  TierId tier = TierId::kDisk;
  uint64_t first = 0;  // block
  uint64_t blocks = 0;
  std::vector<kv::LoadCell> cells;           // where they go, by block, then by group
  std::optional<tier::TransferId> transfer;  // from the disk to staging
  std::optional<Arrival> arrival;            // from there, or from host memory
  bool begun() const { return transfer || arrival; }
};

// Lets a step over the sequence go on as its layers arrive.
class LoadGate final : public exec::LayerGate {
 public:
  // `parts`, all of which are arriving, stay as they are as long as the gate is asked.
  LoadGate(exec::DeviceMemory& memory, const std::deque<LoadPart>& parts) : memory_(memory), parts_(parts) {}
  bool Await(uint32_t layer) override;
  // What was the matter with the first layer that did not arrive.
  const Status& status() const { return status_; }

 private:
  exec::DeviceMemory& memory_;
  const std::deque<LoadPart>& parts_;
  Status status_;
};

struct Loading {
  Loading(StoredBlocks stored_in, const sched::MeetingView& view) : stored(std::move(stored_in)), meeting(view) {}

  SequenceId sequence{0};
  std::vector<TokenId> tokens;  // up to its end
  StoredBlocks stored;
  sched::Meeting meeting;
  std::deque<LoadPart> parts;
  std::map<std::pair<uint64_t, uint32_t>, tier::HostPin> pins;  // of host memory, by block and group, not begun yet
  bool in_layers = false;        // all that comes from host memory comes at once, layer after layer
  std::optional<LoadGate> gate;  // its sequence has joined it, and is in the step
  kv::SlotPromise windows;       // of sliding groups, beside those of what is computed
  sched::PromotionId promotion{0};
  tier::TransferPriority priority = tier::TransferPriority::kPromotion;  // of what it begins to read
  uint64_t part_bytes = 0;                                               // most of a part of several blocks
  Nanos front_at{0};                                                     // from then on what is not there is computed
  Nanos deadline = Nanos::max();                                         // then what is under way is late
  bool then_more = false;                   // once it has ended, what lies beyond is decided upon
  std::optional<sched::Decision> decision;  // of the request that takes it over, until that begins
  uint64_t failed_blocks = 0;
};

}  // namespace cachalot::engine
