// SimTransfers is a TransferEngine in virtual time: each direction is a link that moves one job's bytes after
// another's.
// Threads:   one: jobs run inside calls.
// Ownership: as TransferEngine.
// Invariant: as TransferEngine; the same calls at the same times give the same results.
// Cost:      as the jobs.
//
// A job ends when the link has moved its bytes, which begins a latency after the job and not before the link is free.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/tier_rate.h"
#include "tier/transfer_engine.h"
#include "tier/transfer_queue.h"

namespace cachalot::sim {

class SimTransfers final : public tier::TransferEngine, private tier::StagingHome {
 public:
  // `rates`: by Direction. Nobody is notified.
  SimTransfers(std::span<std::byte> staging, const tier::TransferOptions& options,
               const std::array<TierRate, kDirectionNames.size()>& rates, const Clock& clock);
  ~SimTransfers() override;

  Result<tier::TransferId> Submit(tier::TransferRequest&& request) override;
  void Cancel(tier::TransferId id) override;
  void Raise(tier::TransferId id, tier::TransferPriority priority) override;
  std::vector<tier::TransferCompletion> Poll() override;
  // The end of a job counts as well: nobody notifies of it.
  std::optional<Nanos> WakeAt() const override;
  std::optional<tier::Staging> TakeStaging(uint64_t bytes) override { return queue_.TakeStaging(bytes); }
  tier::TransferMeters meters() const override { return queue_.meters(clock_.Now()); }
  std::vector<std::string> Violations() const override { return queue_.Violations(); }

 private:
  struct End {
    Nanos at;
    tier::TransferQueue::Start start;
    bool operator<(const End& other) const { return std::tie(at, start.id) < std::tie(other.at, other.start.id); }
  };

  void GiveBack(std::span<std::byte> part) override { queue_.GiveBack(part); }
  // Ends what is due, and starts what fits.
  void CatchUp();
  void StartJobs(Nanos now);

  const uint32_t threads_;
  const std::array<TierRate, kDirectionNames.size()> rates_;
  const Clock& clock_;
  tier::TransferQueue queue_;
  std::set<End> running_;
  std::array<Nanos, kDirectionNames.size()> link_free_at_{};
};

}  // namespace cachalot::sim
