#include "tier/testing/fake_transfer_engine.h"

#include <algorithm>

#include "base/check.h"

namespace cachalot::tier {

FakeTransferEngine::FakeTransferEngine(std::span<std::byte> staging, const TransferOptions& options,
                                       const FakeTransferFaults& faults, const Clock& clock)
    : threads_(options.threads),
      faults_(faults),
      clock_(clock),
      random_(faults.seed),
      queue_(options.limits, staging, *this) {}

FakeTransferEngine::~FakeTransferEngine() {
  queue_.CancelAll(clock_.Now());
  for (const Event& event : events_) queue_.Finish(event.id, OkStatus(), clock_.Now());
  held_.clear();
  { const TransferQueue::Posted unclaimed = queue_.TakePosted(); }
  CACHALOT_CHECK(meters().staging_taken_bytes == 0);
}

Nanos FakeTransferEngine::RandomTime(uint64_t bytes) {
  const auto spread = static_cast<uint64_t>((faults_.most_latency - faults_.least_latency).count());
  const double seconds = static_cast<double>(bytes) / faults_.bytes_per_second;
  return faults_.least_latency + Nanos(static_cast<Nanos::rep>(random_.Below(spread + 1) + seconds * 1e9));
}

void FakeTransferEngine::StartJobs(Nanos now) {
  while (events_.size() < threads_) {
    const std::optional<TransferQueue::Start> start = queue_.StartNext(now);
    if (!start) return;
    events_.insert({now + RandomTime(start->bytes), start->id, Stage::kRunEnds, *start});
  }
}

void FakeTransferEngine::Do(const Event& event) {
  const TransferQueue::Start& start = event.start;
  if (event.stage == Stage::kDeliveryEnds) {
    start.job->Deliver(start.staging);
    queue_.Finish(start.id, OkStatus(), event.at);
    return;
  }
  const bool fails = random_.Uniform() < faults_.fail_share;
  Status status = OkStatus();
  if (!fails || random_.Below(2) == 0) status = start.job->Run(start.staging, *start.stop);
  if (fails) status = Unavailable("transfer: failed as the test asked");
  if (status.ok() && queue_.BeginDelivery(start.id, event.at)) {
    events_.insert({event.at + RandomTime(0), start.id, Stage::kDeliveryEnds, start});
  } else {
    queue_.Finish(start.id, std::move(status), event.at);
  }
}

void FakeTransferEngine::CatchUp() {
  const Nanos now = clock_.Now();
  while (!events_.empty() && events_.begin()->at <= now) {
    const Event event = *events_.begin();
    events_.erase(events_.begin());
    Do(event);
    StartJobs(event.at);
  }
  StartJobs(now);
  queue_.Expire(now);
}

Result<TransferId> FakeTransferEngine::Submit(TransferRequest&& request) {
  CatchUp();
  Result<TransferId> id = queue_.Submit(std::move(request), clock_.Now());
  StartJobs(clock_.Now());
  return id;
}

void FakeTransferEngine::Cancel(TransferId id) {
  CatchUp();
  queue_.Cancel(id, clock_.Now());
}

void FakeTransferEngine::Raise(TransferId id, TransferPriority priority) {
  CatchUp();
  queue_.Raise(id, priority);
}

std::vector<TransferCompletion> FakeTransferEngine::Poll() {
  CatchUp();
  std::vector<TransferCompletion> told = std::exchange(held_, {});
  TransferQueue::Posted posted = queue_.TakePosted();
  for (TransferCompletion& completion : posted.completions) {
    (random_.Uniform() < faults_.hold_share ? held_ : told).push_back(std::move(completion));
  }
  for (size_t i = told.size(); i > 1; --i) std::swap(told[i - 1], told[random_.Below(i)]);
  return told;
}

std::optional<Nanos> FakeTransferEngine::WakeAt() const {
  if (!held_.empty()) return clock_.Now();
  std::optional<Nanos> wake = queue_.WakeAt();
  if (!events_.empty()) wake = std::min(wake.value_or(Nanos::max()), events_.begin()->at);
  return wake;
}

}  // namespace cachalot::tier
