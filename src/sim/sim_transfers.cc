#include "sim/sim_transfers.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cachalot::sim {
namespace {

Nanos Seconds(double seconds) {
  constexpr double kMost = 1e9;
  return Nanos(static_cast<Nanos::rep>(std::min(seconds, kMost) * 1e9));
}

}  // namespace

SimTransfers::SimTransfers(std::span<std::byte> staging, const tier::TransferOptions& options,
                           const std::array<TierRate, kDirectionNames.size()>& rates, const Clock& clock)
    : threads_(options.threads), rates_(rates), clock_(clock), queue_(options.limits, staging, *this) {}

SimTransfers::~SimTransfers() {
  queue_.CancelAll(clock_.Now());
  for (const End& end : running_) queue_.Finish(end.start.id, OkStatus(), clock_.Now());
  { const tier::TransferQueue::Posted unclaimed = queue_.TakePosted(); }
  CACHALOT_CHECK(meters().staging_taken_bytes == 0);
}

void SimTransfers::StartJobs(Nanos now) {
  while (running_.size() < threads_) {
    const std::optional<tier::TransferQueue::Start> start = queue_.StartNext(now);
    if (!start) return;
    const auto direction = static_cast<size_t>(start->direction);
    const TierRate& rate = rates_[direction];
    Nanos& link_free_at = link_free_at_[direction];
    link_free_at = std::max(link_free_at, now + Seconds(rate.latency_seconds)) +
                   Seconds(static_cast<double>(start->bytes) / rate.bytes_per_second);
    running_.insert({link_free_at, *start});
  }
}

void SimTransfers::CatchUp() {
  const Nanos now = clock_.Now();
  while (!running_.empty() && running_.begin()->at <= now) {
    const auto [at, start] = *running_.begin();
    running_.erase(running_.begin());
    Status status = start.job->Run(start.staging, *start.stop);
    if (status.ok() && queue_.BeginDelivery(start.id, at)) start.job->Deliver(start.staging);
    queue_.Finish(start.id, std::move(status), at);
    StartJobs(at);
  }
  StartJobs(now);
  queue_.Expire(now);
}

Result<tier::TransferId> SimTransfers::Submit(tier::TransferRequest&& request) {
  CatchUp();
  Result<tier::TransferId> id = queue_.Submit(std::move(request), clock_.Now());
  StartJobs(clock_.Now());
  return id;
}

void SimTransfers::Cancel(tier::TransferId id) {
  CatchUp();
  queue_.Cancel(id, clock_.Now());
}

void SimTransfers::Raise(tier::TransferId id, tier::TransferPriority priority) {
  CatchUp();
  queue_.Raise(id, priority);
}

std::vector<tier::TransferCompletion> SimTransfers::Poll() {
  CatchUp();
  return queue_.TakePosted().completions;
}

std::optional<Nanos> SimTransfers::WakeAt() const {
  std::optional<Nanos> wake = queue_.WakeAt();
  if (!running_.empty()) wake = std::min(wake.value_or(Nanos::max()), running_.begin()->at);
  return wake;
}

}  // namespace cachalot::sim
