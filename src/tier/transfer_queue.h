// TransferQueue decides which job runs next, and what becomes of each: the transfer engine without its threads.
// Threads:   none of its own; the owner guards it.
// Ownership: owns jobs from Submit until TakePosted. Destroys none, nor any staging, so that the owner may call it
//            under the lock that giving staging back takes.
// Invariant: as TransferEngine.
// Cost:      as TransferEngine.
//
//             StartNext            BeginDelivery              Finish
//   waiting ────────────► running ───────────────► delivering ───────► completed
//      │                     │ Cancel, Expire                              ▲
//      │ Cancel, Expire      └────► completed, quarantined ─Finish─► over  │
//      └───────────────────────────────────────────────────────────────────┘
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tier/transfer_engine.h"

namespace cachalot::tier {

class TransferQueue {
 public:
  // A class of jobs that was passed by so many starts is next.
  static constexpr uint32_t kPatience = 64;

  struct Start {
    TransferId id;
    TransferJob* job;
    Direction direction;
    uint64_t bytes;
    std::span<std::byte> staging;
    const std::atomic<bool>* stop;  // valid, as the job, until Finish
  };
  // What the owner is to take, or to destroy.
  struct Posted {
    std::vector<TransferCompletion> completions;
    std::vector<std::pair<std::unique_ptr<TransferJob>, Staging>> over;  // quarantined jobs that returned
  };

  // Staging given to jobs names `home` as where it goes back to.
  TransferQueue(const TransferLimits& limits, std::span<std::byte> staging, StagingHome& home);

  Result<TransferId> Submit(TransferRequest&& request, Nanos now);
  void Cancel(TransferId id, Nanos now);
  void Raise(TransferId id, TransferPriority priority);
  void CancelAll(Nanos now);
  // Completes what is past its deadline.
  void Expire(Nanos now);
  // Expires, then starts the next job, if one fits.
  std::optional<Start> StartNext(Nanos now);
  // Run() succeeded: whether its bytes may be delivered.
  bool BeginDelivery(TransferId id, Nanos now);
  // The job returned, for good.
  void Finish(TransferId id, Status status, Nanos now);

  Posted TakePosted();
  std::optional<Nanos> WakeAt() const;

  std::optional<Staging> TakeStaging(uint64_t bytes);
  void GiveBack(std::span<std::byte> part) { staging_.GiveBack(part); }

  TransferMeters meters(Nanos now) const;
  std::vector<std::string> Violations() const;

 private:
  enum class Phase : uint8_t { kWaiting, kRunning, kDelivering, kQuarantined };
  struct Record {
    TransferRequest request;
    Phase phase = Phase::kWaiting;
    bool cancelled = false;  // while it was delivered
    Nanos submitted{0};
    Nanos started{0};
    std::atomic<bool> stop{false};
  };
  // Jobs of one priority, link and direction, in the order of submission.
  struct JobClass {
    std::set<TransferId> waiting;
    uint32_t passed = 0;  // starts in other classes since one of these started, or none waited
  };
  static constexpr size_t kClasses = kTransferPriorities * kTierNames.size() * kDirectionNames.size();
  using Records = std::map<TransferId, Record>;

  // What is not free enough for a job.
  struct Lack {
    bool direction = false;
    bool staging = false;
  };

  Status Check(const TransferRequest& request) const;
  Lack LackOf(const TransferRequest& request) const;
  JobClass& ClassOf(const TransferRequest& request);
  TransferMeter& LaneOf(const TransferRequest& request) { return meters_.lane(request.link, request.direction); }
  Nanos& BusySince(const TransferRequest& request) {
    return busy_since_[TierIndex(request.link)][static_cast<size_t>(request.direction)];
  }
  std::optional<TransferId> Choose() const;
  void EnterClass(TransferId id, const TransferRequest& request);
  // It waits no longer.
  void LeaveClass(TransferId id, const TransferRequest& request);
  // Its budget is free again, but for its staging.
  void StopRunning(const TransferRequest& request, Nanos now);
  TransferCompletion& Post(TransferId id, const Record& record, TransferEnd end, Status status, Nanos now);
  // Posts its completion, unless it is being delivered or was posted already.
  void GiveUp(Records::iterator at, TransferEnd end, Nanos now);

  const TransferLimits limits_;
  StagingPool staging_;
  StagingHome& home_;
  Records records_;
  std::array<JobClass, kClasses> classes_;
  std::set<std::pair<Nanos, TransferId>> deadlines_;
  TransferId last_id_{0};
  Posted posted_;
  TransferMeters meters_;
  std::array<std::array<Nanos, kDirectionNames.size()>, kTierNames.size()> busy_since_{};
};

}  // namespace cachalot::tier
