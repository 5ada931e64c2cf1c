// DiskStore is the store of a disk tier: runs are read and written by a transfer engine.
// Threads:   belongs to the engine thread; files are read and written on the transfer engine's.
// Ownership: owns the disk tier and the transfers to and from it.
// Invariant: that of KvStore.
// Cost:      a lookup is one in the tier's index; no call waits for the disk but Clear and Close.
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
#include "tier/kv_store.h"
#include "tier/run_store.h"
#include "tier/transfer_engine.h"

namespace cachalot::cost {
class TierRates;
}

namespace cachalot::tier {

class DiskStore final : public KvStore {
 public:
  // A disk tier, staging memory for some blocks of at most `block_bytes`, and transfer threads of its own.
  // `measured`: what is known of its speed.
  static Result<std::unique_ptr<DiskStore>> Open(FileSystem& files, Clock& clock, DiskTierOptions options,
                                                 uint64_t block_bytes, const TierRateTable& measured = {});
  // The same over another disk, with transfers that `make` makes of staging and options.
  using TransferMaker =
      std::function<Result<std::unique_ptr<TransferEngine>>(std::span<std::byte> staging, const TransferOptions&)>;
  static Result<std::unique_ptr<DiskStore>> Over(std::unique_ptr<RunStore> disk, Clock& clock, uint64_t block_bytes,
                                                 const TransferMaker& make, const TierRateTable& measured = {});
  // `transfers` runs one job down at a time.
  DiskStore(std::unique_ptr<RunStore> disk, std::unique_ptr<TransferEngine> transfers, Clock& clock,
            const TierRateTable& measured = {});
  ~DiskStore() override;

  uint32_t GroupsOf(const Digest& identity, const Digest& key) const override;
  void Touch(std::span<const Digest> keys) override { disk_->Touch(keys); }
  Nanos DeadlineOf(const Digest& key) const override;
  Result<TransferId> Load(KvRun run, uint64_t bytes, Nanos deadline, TransferPriority priority) override;
  void Cancel(TransferId id) override;
  void Raise(TransferId id) override;
  std::optional<Staging> TakeStaging(uint64_t bytes) override;
  Result<TransferId> Store(KvRun run, Staging bytes) override;
  Result<TransferId> Sync() override;
  Result<TransferId> Erase(std::vector<Digest> keys) override;
  Status Clear() override;
  std::vector<Ended> Poll(Nanos now) override;
  void OnEnd(std::function<void()> call) override;
  std::optional<Nanos> WakeAt() const override;
  uint64_t queued_load_bytes() const override { return loading_bytes_; }
  TierRate load_rate(Nanos now) const override;
  const KvStoreStats& stats() const override { return stats_; }

  uint64_t staging_bytes() const { return staging_.capacity_bytes(); }
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
    TransferPriority priority = TransferPriority::kPromotion;
    uint64_t queued_bytes = 0;  // before it
    bool passed = false;        // by some that came later: what it waits for is not known
  };

  Result<TransferId> Submit(TransferRequest request);
  void PassThoseAfter(TransferPriority priority);
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
