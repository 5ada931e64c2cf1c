#include "tier/transfer_engine.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/mutex.h"
#include "tier/transfer_queue.h"

namespace cachalot::tier {
namespace {

// Jobs and staging are destroyed outside the lock: a Staging takes it to go back.
class ThreadedTransferEngine final : public TransferEngine, private StagingHome {
 public:
  ThreadedTransferEngine(std::span<std::byte> staging, const TransferOptions& options, const Clock& clock)
      : clock_(clock), notify_(options.notify), queue_(options.limits, staging, *this) {
    for (uint32_t i = 0; i < options.threads; ++i) workers_.emplace_back([this] { WorkerMain(); });
  }

  ~ThreadedTransferEngine() override {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
      queue_.CancelAll(clock_.Now());
    }
    may_start_.NotifyAll();
    for (std::thread& worker : workers_) worker.join();
    { const TransferQueue::Posted unclaimed = TakePosted(); }
    CACHALOT_CHECK(meters().staging_taken_bytes == 0);
  }

  Result<TransferId> Submit(TransferRequest&& request) override CACHALOT_EXCLUDES(mutex_) {
    Result<TransferId> id = Enqueue(std::move(request));
    may_start_.NotifyOne();
    return id;
  }

  void Cancel(TransferId id) override CACHALOT_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      queue_.Cancel(id, clock_.Now());
    }
    may_start_.NotifyAll();
  }

  void Raise(TransferId id, TransferPriority priority) override CACHALOT_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      queue_.Raise(id, priority);
    }
    may_start_.NotifyAll();  // where what stands first now fits
  }

  std::vector<TransferCompletion> Poll() override {
    TransferQueue::Posted posted = TakePosted();
    if (!posted.completions.empty()) may_start_.NotifyAll();  // where what was late stood first
    return std::move(posted.completions);
  }

  std::optional<Nanos> WakeAt() const override CACHALOT_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return queue_.WakeAt();
  }

  std::optional<Staging> TakeStaging(uint64_t bytes) override CACHALOT_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return queue_.TakeStaging(bytes);
  }

  TransferMeters meters() const override CACHALOT_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return queue_.meters(clock_.Now());
  }

  std::vector<std::string> Violations() const override CACHALOT_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return queue_.Violations();
  }

 private:
  void GiveBack(std::span<std::byte> part) override CACHALOT_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      queue_.GiveBack(part);
    }
    may_start_.NotifyAll();
  }

  Result<TransferId> Enqueue(TransferRequest&& request) CACHALOT_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return queue_.Submit(std::move(request), clock_.Now());
  }

  TransferQueue::Posted TakePosted() CACHALOT_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    queue_.Expire(clock_.Now());
    return queue_.TakePosted();
  }

  // Nothing when the engine ends.
  std::optional<TransferQueue::Start> WaitForStart() CACHALOT_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    for (;;) {
      if (stopping_) return std::nullopt;
      if (const auto start = queue_.StartNext(clock_.Now())) return start;
      may_start_.Wait(mutex_);
    }
  }

  bool BeginDelivery(TransferId id) CACHALOT_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return queue_.BeginDelivery(id, clock_.Now());
  }

  void Finish(TransferId id, Status status) CACHALOT_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      queue_.Finish(id, std::move(status), clock_.Now());
    }
    may_start_.NotifyAll();
    notify_();
  }

  void WorkerMain() {
    while (const std::optional<TransferQueue::Start> start = WaitForStart()) {
      Status status = start->job->Run(start->staging, *start->stop);
      if (status.ok() && BeginDelivery(start->id)) start->job->Deliver(start->staging);
      Finish(start->id, std::move(status));
    }
  }

  const Clock& clock_;
  const std::function<void()> notify_;
  mutable Mutex mutex_;
  CondVar may_start_;
  TransferQueue queue_ CACHALOT_GUARDED_BY(mutex_);
  bool stopping_ CACHALOT_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> workers_;
};

}  // namespace

Result<std::unique_ptr<TransferEngine>> MakeTransferEngine(std::span<std::byte> staging, const TransferOptions& options,
                                                           const Clock& clock) {
  const auto& most = options.limits.in_flight_bytes;
  const auto& jobs = options.limits.running_jobs;
  if (options.threads == 0 || options.limits.waiting_jobs == 0 ||
      std::min({most[0], most[1], uint64_t{jobs[0]}, uint64_t{jobs[1]}}) == 0) {
    return Invalid(
        fmt::format("transfers: {} threads, {} jobs may wait, {} and {} bytes in flight, {} and {} jobs run up and "
                    "down; expected at least one of each",
                    options.threads, options.limits.waiting_jobs, most[0], most[1], jobs[0], jobs[1]));
  }
  return std::unique_ptr<TransferEngine>(std::make_unique<ThreadedTransferEngine>(staging, options, clock));
}

}  // namespace cachalot::tier
