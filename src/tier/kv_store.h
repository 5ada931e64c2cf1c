// KvStore is what the engine sees of the tiers below the hot pool: which blocks they hold, and runs that travel.
// Threads:   belongs to the engine thread; files are read and written on the transfer engine's.
// Ownership: owns the disk tier and the transfers to and from it.
// Invariant: every run that was started ends exactly once, and says whether its bytes are what was stored under its
//            keys. Nothing here changes an answer: what is not there, late or damaged is computed.
// Cost:      Match is a lookup per block; no call waits for the disk but Close.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/tier_rate.h"
#include "tier/aligned_bytes.h"
#include "tier/disk_tier.h"
#include "tier/end_listener.h"
#include "tier/kv_run.h"
#include "tier/run_store.h"
#include "tier/transfer_engine.h"

namespace cachalot::cost {
class TierRates;
}

namespace cachalot::tier {

struct KvStoreStats {
  uint64_t loaded_bytes = 0;
  uint64_t stored_bytes = 0;
  uint64_t failed_loads = 0;   // runs of which some block was not what it had to be
  uint64_t failed_stores = 0;  // runs that were not written
  uint32_t transfers = 0;      // under way now
  Status health;               // why nothing is written for the time being; OK otherwise
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

  // A disk tier, staging memory for some blocks of at most `block_bytes`, and transfer threads of its own.
  // `measured`: what is known of its speed.
  static Result<std::unique_ptr<KvStore>> Open(FileSystem& files, Clock& clock, DiskTierOptions options,
                                               uint64_t block_bytes, const TierRateTable& measured = {});
  // The same over another disk, with transfers that `make` makes of staging and options.
  using TransferMaker =
      std::function<Result<std::unique_ptr<TransferEngine>>(std::span<std::byte> staging, const TransferOptions&)>;
  static Result<std::unique_ptr<KvStore>> Over(std::unique_ptr<RunStore> disk, Clock& clock, uint64_t block_bytes,
                                               const TransferMaker& make, const TierRateTable& measured = {});
  // `transfers` runs one job down at a time.
  KvStore(std::unique_ptr<RunStore> disk, std::unique_ptr<TransferEngine> transfers, Clock& clock,
          const TierRateTable& measured = {});
  ~KvStore();

  // Groups of the leading blocks of a chain that are there.
  std::vector<uint32_t> Match(const Digest& identity, std::span<const Digest> keys) const;

  // Of one block; 0 if it is not there.
  uint32_t GroupsOf(const Digest& identity, const Digest& key) const;

  // When it ends, by the store's clock; Nanos::max(): never, or it is not there.
  Nanos DeadlineOf(const Digest& key) const;

  // What a run should have at most; one block may have more.
  static constexpr uint64_t run_bytes() { return uint64_t{1} << 20; }
  // Starts to read a run of `bytes`, which is late after `deadline`. kOverloaded while too much is under way.
  Result<TransferId> Load(KvRun run, uint64_t bytes, Nanos deadline);
  // Nobody wants it any more: it ends all the same.
  void Cancel(TransferId id);
  // For the bytes of a run that is going to be stored; nothing while too much is under way.
  std::optional<Staging> TakeStaging(uint64_t bytes);
  Result<TransferId> Store(KvRun run, Staging bytes);
  // What was stored before survives a crash once this has ended well.
  Result<TransferId> Sync();
  // These blocks are not found any more once this has ended well, also after a restart; whatever was stored before.
  Result<TransferId> Erase(std::vector<Digest> keys);
  // Nothing is found any more, also after a restart. Waits for the disk; of loads under way nothing changes.
  Status Clear();
  // What ended since the last call.
  std::vector<Ended> Poll(Nanos now);
  // Called from any thread whenever there is something to Poll, until it is replaced; not under way once this returns.
  void OnEnd(std::function<void()> call);
  // When Poll will have something without a call.
  std::optional<Nanos> WakeAt() const;

  // Bytes that would be read before a load that is started now.
  uint64_t queued_load_bytes() const { return loading_bytes_; }
  TierRate load_rate(Nanos now) const;
  uint64_t staging_bytes() const { return staging_.capacity_bytes(); }
  // As of the last Poll.
  const KvStoreStats& stats() const { return stats_; }

  // From now on runs are read at that rate at most, all together: for measurements. Requires that none is being read.
  void SlowReads(uint64_t bytes_per_second);
  // Ends what is under way and makes it last. Nothing may be started after.
  Status Close();

 private:
  class ReadPace;
  class LoadJob;
  class ChangeJob;
  struct Loading {
    TransferId id;
    uint64_t bytes = 0;
    uint64_t queued_bytes = 0;  // before it
  };

  Result<TransferId> Submit(TransferRequest request);
  void EraseExpired(Nanos now);
  // After all that was begun before.
  Result<TransferId> SubmitChange(std::function<Status(RunStore&)> change);
  Ended End(TransferCompletion& completion, Nanos now);
  void EndLoad(const Loading& loading, TransferCompletion& completion, Nanos now, Ended* ended);

  std::unique_ptr<RunStore> disk_;
  AlignedBytes staging_;  // may be empty
  EndListener listener_;
  std::unique_ptr<ReadPace> pace_;
  std::unique_ptr<TransferEngine> transfers_;  // ends before what its jobs use
  Clock& clock_;
  const std::unique_ptr<cost::TierRates> rates_;
  std::vector<Loading> loading_;
  std::vector<TransferId> storing_;
  std::vector<Ended> ended_;  // that Clear came across
  uint64_t loading_bytes_ = 0;
  std::optional<TransferId> expiry_;  // under way
  KvStoreStats stats_;
};

}  // namespace cachalot::tier
