// KvStore is what the engine sees of the tiers below host memory: which blocks they hold, and runs that travel.
// Threads:   belongs to the engine thread.
// Ownership: that of the implementation.
// Invariant: every run that was started ends exactly once, and says whether its bytes are what was stored under its
//            keys. Nothing here changes an answer: what is not there, late or damaged is computed.
// Cost:      GroupsOf and DeadlineOf are a lookup; no call waits but Clear.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/tier_rate.h"
#include "base/transfer_meter.h"
#include "tier/kv_run.h"
#include "tier/run_store.h"
#include "tier/transfer_engine.h"

namespace cachalot::tier {

struct KvStoreStats {
  uint64_t loaded_bytes = 0;
  uint64_t stored_bytes = 0;
  uint64_t failed_loads = 0;                                 // runs of which some block was not what it had to be
  uint64_t failed_stores = 0;                                // runs that were not written
  std::array<TransferMeter, kDirectionNames.size()> link{};  // by direction
  uint32_t transfers = 0;                                    // under way now
  Status health;                                             // why nothing is written for the time being; OK otherwise
  DiskTierStats disk;
};

class KvStore {
 public:
  struct Ended {
    TransferId id;
    bool load = false;
    Status status;  // OK: all blocks of the run were moved, and are what they have to be
    Staging bytes;  // of a load that went well
  };

  virtual ~KvStore() = default;

  // Groups of one block that was computed with `identity`; 0 if it is not there.
  virtual uint32_t GroupsOf(const Digest& identity, const Digest& key) const = 0;
  // Of the leading blocks of a chain that are there.
  std::vector<uint32_t> Match(const Digest& identity, std::span<const Digest> keys) const {
    std::vector<uint32_t> groups;
    for (const Digest& key : keys) {
      const uint32_t there = GroupsOf(identity, key);
      if (there == 0) break;
      groups.push_back(there);
    }
    return groups;
  }
  // Somebody who waits will read them: those that are there count as read.
  virtual void Touch(std::span<const Digest> keys) = 0;
  // When it ends, by the store's clock; Nanos::max(): never, or it is not there.
  virtual Nanos DeadlineOf(const Digest& key) const = 0;

  // What a run should have at most; one block may have more.
  static constexpr uint64_t run_bytes() { return uint64_t{1} << 20; }
  // Starts to read a run of `bytes`, which is late after `deadline`. kOverloaded while too much is under way.
  // `priority`: kPromotion where a request waits for it, kPrefetch for what comes up ahead.
  virtual Result<TransferId> Load(KvRun run, uint64_t bytes, Nanos deadline, TransferPriority priority) = 0;
  // Nobody wants it any more: it ends all the same.
  virtual void Cancel(TransferId id) = 0;
  // A request waits for this load now, as far as it has not begun.
  virtual void Raise(TransferId id) = 0;
  // For the bytes of a run that is going to be stored; nothing while too much is under way.
  virtual std::optional<Staging> TakeStaging(uint64_t bytes) = 0;
  virtual Result<TransferId> Store(KvRun run, Staging bytes) = 0;
  // What was stored before survives a crash once this has ended well.
  virtual Result<TransferId> Sync() = 0;
  // These blocks are not found any more once this has ended well, also after a restart; whatever was stored before.
  virtual Result<TransferId> Erase(std::vector<Digest> keys) = 0;
  // Nothing is found any more, also after a restart. Waits for the disk; of loads under way nothing changes.
  virtual Status Clear() = 0;
  // What ended since the last call.
  virtual std::vector<Ended> Poll(Nanos now) = 0;
  // Called from any thread whenever there is something to Poll, until it is replaced; not under way once this returns.
  virtual void OnEnd(std::function<void()> call) = 0;
  // When Poll will have something without a call.
  virtual std::optional<Nanos> WakeAt() const = 0;

  // Bytes of loads under way.
  virtual uint64_t queued_load_bytes() const = 0;
  virtual TierRate load_rate(Nanos now) const = 0;
  // As of the last Poll.
  virtual const KvStoreStats& stats() const = 0;
};

}  // namespace cachalot::tier
