// FakeTransferEngine runs transfer jobs in virtual time: late, out of order, failing, and on after they were cancelled.
// Threads:   one: jobs run inside calls.
// Ownership: as TransferEngine.
// Invariant: as TransferEngine; the same calls at the same times give the same results. A job touches bytes at the last
//            moment only, so that whoever reads or reuses them too early gets the wrong ones.
// Cost:      as the jobs.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "tier/transfer_engine.h"
#include "tier/transfer_queue.h"

namespace cachalot::tier {

struct FakeTransferFaults {
  uint64_t seed = 0;
  Nanos least_latency{100'000};
  Nanos most_latency{10'000'000};  // evenly between the two: jobs overtake each other
  double bytes_per_second = 1e9;
  double fail_share = 0;  // of jobs: half of them have touched their bytes before
  double hold_share = 0;  // of completions: not told by the Poll that could, but by the next
};

class FakeTransferEngine final : public TransferEngine, private StagingHome {
 public:
  // `options.threads` jobs run at once; nobody is notified.
  FakeTransferEngine(std::span<std::byte> staging, const TransferOptions& options, const FakeTransferFaults& faults,
                     const Clock& clock);
  ~FakeTransferEngine() override;

  Result<TransferId> Submit(TransferRequest&& request) override;
  void Cancel(TransferId id) override;
  void Raise(TransferId id, TransferPriority priority) override;
  // In random order.
  std::vector<TransferCompletion> Poll() override;
  // The end of a job counts as well: nobody notifies of it.
  std::optional<Nanos> WakeAt() const override;
  std::optional<Staging> TakeStaging(uint64_t bytes) override { return queue_.TakeStaging(bytes); }
  TransferMeters meters() const override { return queue_.meters(clock_.Now()); }
  std::vector<std::string> Violations() const override { return queue_.Violations(); }

 private:
  enum class Stage : uint8_t { kRunEnds, kDeliveryEnds };
  struct Event {
    Nanos at;
    TransferId id;
    Stage stage;
    TransferQueue::Start start;
    bool operator<(const Event& other) const { return std::tie(at, id) < std::tie(other.at, other.id); }
  };

  void GiveBack(std::span<std::byte> part) override { queue_.GiveBack(part); }
  Nanos RandomTime(uint64_t bytes);
  // Does what is due, and starts what fits.
  void CatchUp();
  void StartJobs(Nanos now);
  void Do(const Event& event);

  const uint32_t threads_;
  const FakeTransferFaults faults_;
  const Clock& clock_;
  SplitMix64 random_;
  TransferQueue queue_;
  std::set<Event> events_;  // one per running job
  std::vector<TransferCompletion> held_;
};

}  // namespace cachalot::tier
