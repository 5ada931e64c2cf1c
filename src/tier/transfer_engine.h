// TransferEngine moves bytes between places in the background.
// Threads:   called by the owner's thread alone, on which it also destroys jobs; jobs run on others. `notify` is called
//            from any thread, under no lock.
// Ownership: a job belongs to the engine from Submit until its completion; if that comes while the job still runs,
//            until a Poll after it has returned. Staging taken from an engine must not outlive it.
// Invariant: every job submitted completes exactly once. Bytes in flight per direction, and staging, stay within their
//            limits, jobs that still run after their completion included. A job is started with all of its staging or
//            not at all. Nothing is delivered once the completion is posted.
// Cost:      O(log jobs) per call; memory for the jobs that wait, of which there is a limit.
//
// A job has two parts. Run may take long or hang: it touches its staging and what the job itself owns, nothing else.
// Deliver follows, if Run succeeded and nobody cancelled meanwhile, and copies memory into places of others. So a job
// that is cancelled or late completes at once: Run may go on, quarantined, and its budget is held until it returns.
//
// Promotions go before write-backs and those before prefetches; whatever has been passed by 64 starts is next, and then
// nobody takes what it waits for.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"
#include "base/tier_rate.h"
#include "base/transfer_meter.h"
#include "tier/staging.h"

namespace cachalot::tier {

enum class TransferPriority : uint8_t { kPromotion = 0, kWriteBack = 1, kPrefetch = 2 };
inline constexpr size_t kTransferPriorities = 3;

using TransferId = Id<struct TransferTag, uint64_t>;  // ascending in the order of submission

class TransferJob {
 public:
  virtual ~TransferJob() = default;
  // `stop` becomes true once nobody waits for the result: return soon then, if that can be done.
  virtual Status Run(std::span<std::byte> staging, const std::atomic<bool>& stop) = 0;
  virtual void Deliver(std::span<const std::byte>) {}
};

struct TransferRequest {
  TransferPriority priority = TransferPriority::kPromotion;
  TierId link = TierId::kHost;
  Direction direction = Direction::kUp;
  uint64_t bytes = 0;          // that are in flight while it runs
  uint64_t staging_bytes = 0;  // to be given to it; 0 when it brings its own or needs none
  Staging staging;
  Nanos deadline = Nanos::max();  // by the engine's clock
  std::unique_ptr<TransferJob> job;
};

struct TransferCompletion {
  TransferId id;
  TransferEnd end = TransferEnd::kDone;
  Status status;                     // OK iff kDone; cancelled and late are kUnavailable
  std::unique_ptr<TransferJob> job;  // null while it still runs; its staging is then held, too
  Staging staging;                   // as the job left it
  Nanos waited{0};                   // from its submission to its start or end
  Nanos ran{0};
};

struct TransferMeters {
  std::array<std::array<TransferMeter, kDirectionNames.size()>, kTierNames.size()> lanes;
  uint64_t staging_bytes = 0;
  uint64_t staging_taken_bytes = 0;

  TransferMeter& lane(TierId link, Direction direction) {
    return lanes[TierIndex(link)][static_cast<size_t>(direction)];
  }
  const TransferMeter& lane(TierId link, Direction direction) const {
    return lanes[TierIndex(link)][static_cast<size_t>(direction)];
  }
  uint64_t in_flight_bytes(Direction direction) const;
  uint32_t running_jobs(Direction direction) const;
  uint32_t waiting_jobs() const;
};

class TransferEngine {
 public:
  virtual ~TransferEngine() = default;

  // kInvalid for what would never fit, with needed and limit; kOverloaded while too many wait. `request` is then as it
  // was.
  virtual Result<TransferId> Submit(TransferRequest&& request) = 0;
  // Nobody wants it any more: it completes soon, as cancelled unless it was over already. No error if it has completed.
  virtual void Cancel(TransferId id) = 0;
  // While it waits it goes before others, as if it had been submitted with that priority. No effect if it goes sooner.
  virtual void Raise(TransferId id, TransferPriority priority) = 0;
  // Completions since the last call, of jobs past their deadline too.
  virtual std::vector<TransferCompletion> Poll() = 0;
  // When Poll() will have something to do without a notification; nothing: never.
  virtual std::optional<Nanos> WakeAt() const = 0;

  // For one who fills staging before it submits a job with it. Nothing while too little is free, or a job waits for it.
  // Requires bytes > 0.
  virtual std::optional<Staging> TakeStaging(uint64_t bytes) = 0;

  virtual TransferMeters meters() const = 0;
  // One line per broken invariant; empty when all hold.
  virtual std::vector<std::string> Violations() const = 0;
};

struct TransferLimits {
  std::array<uint64_t, kDirectionNames.size()> in_flight_bytes{};  // by direction
  uint32_t waiting_jobs = 4096;
  std::array<uint32_t, kDirectionNames.size()> running_jobs = {kAnyNumber, kAnyNumber};  // by direction

  static constexpr uint32_t kAnyNumber = std::numeric_limits<uint32_t>::max();
};

struct TransferOptions {
  TransferLimits limits;
  uint32_t threads = 2;                  // so many jobs run at once
  std::function<void()> notify = [] {};  // there is something to Poll()
};

// `staging` begins at a multiple of 4096 and outlives the engine; `clock` too. Destruction waits until running jobs
// have returned. kInvalid for options that let nothing run.
Result<std::unique_ptr<TransferEngine>> MakeTransferEngine(std::span<std::byte> staging, const TransferOptions& options,
                                                           const Clock& clock);

}  // namespace cachalot::tier
