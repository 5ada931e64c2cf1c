#include "tier/transfer_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/units.h"

namespace cachalot::tier {
namespace {

Status StatusOf(TransferEnd end) {
  return Unavailable(end == TransferEnd::kLate ? "transfer: past its deadline" : "transfer: cancelled");
}

}  // namespace

uint64_t TransferMeters::in_flight_bytes(Direction direction) const {
  uint64_t bytes = 0;
  for (const auto& link : lanes) bytes += link[static_cast<size_t>(direction)].in_flight_bytes;
  return bytes;
}

uint32_t TransferMeters::running_jobs(Direction direction) const {
  uint32_t jobs = 0;
  for (const auto& link : lanes) jobs += link[static_cast<size_t>(direction)].running_jobs;
  return jobs;
}

uint32_t TransferMeters::waiting_jobs() const {
  uint32_t jobs = 0;
  for (const auto& link : lanes) {
    for (const TransferMeter& lane : link) jobs += lane.waiting_jobs;
  }
  return jobs;
}

TransferQueue::TransferQueue(const TransferLimits& limits, std::span<std::byte> staging, StagingHome& home)
    : limits_(limits), staging_(staging), home_(home) {}

TransferQueue::JobClass& TransferQueue::ClassOf(const TransferRequest& request) {
  const size_t priority_and_link = static_cast<size_t>(request.priority) * kTierNames.size() + TierIndex(request.link);
  return classes_[priority_and_link * kDirectionNames.size() + static_cast<size_t>(request.direction)];
}

Status TransferQueue::Check(const TransferRequest& request) const {
  CACHALOT_CHECK(request.job != nullptr && (request.staging_bytes == 0 || request.staging.bytes().empty()));
  const uint64_t most = limits_.in_flight_bytes[static_cast<size_t>(request.direction)];
  if (request.bytes > most) {
    return Invalid(fmt::format("transfer of {}: at most {} may be in flight {}", FormatBytes(request.bytes),
                               FormatBytes(most), request.direction == Direction::kUp ? "up" : "down"));
  }
  if (request.staging_bytes > staging_.total_bytes()) {
    return Invalid(fmt::format("transfer through {} of staging: there are {}", FormatBytes(request.staging_bytes),
                               FormatBytes(staging_.total_bytes())));
  }
  if (meters_.waiting_jobs() >= limits_.waiting_jobs) {
    return Overloaded(fmt::format("transfer: {} jobs wait, as many as may", limits_.waiting_jobs));
  }
  return OkStatus();
}

Result<TransferId> TransferQueue::Submit(TransferRequest&& request, Nanos now) {
  CACHALOT_RETURN_IF_ERROR(Check(request));
  last_id_ = TransferId(last_id_.value + 1);
  Record& record = records_[last_id_];
  record.request = std::move(request);
  record.submitted = now;
  EnterClass(last_id_, record.request);
  if (record.request.deadline != Nanos::max()) deadlines_.emplace(record.request.deadline, last_id_);
  return last_id_;
}

void TransferQueue::EnterClass(TransferId id, const TransferRequest& request) {
  ClassOf(request).waiting.insert(id);
  ++LaneOf(request).waiting_jobs;
}

void TransferQueue::LeaveClass(TransferId id, const TransferRequest& request) {
  JobClass& jobs = ClassOf(request);
  jobs.waiting.erase(id);
  if (jobs.waiting.empty()) jobs.passed = 0;
  --LaneOf(request).waiting_jobs;
}

void TransferQueue::StopRunning(const TransferRequest& request, Nanos now) {
  TransferMeter& lane = LaneOf(request);
  lane.in_flight_bytes -= request.bytes;
  if (--lane.running_jobs == 0) lane.busy += now - BusySince(request);
}

TransferCompletion& TransferQueue::Post(TransferId id, const Record& record, TransferEnd end, Status status,
                                        Nanos now) {
  ++LaneOf(record.request).jobs[static_cast<size_t>(end)];
  TransferCompletion& completion = posted_.completions.emplace_back();
  completion.id = id;
  completion.end = end;
  completion.status = std::move(status);
  const bool never_ran = record.phase == Phase::kWaiting;
  completion.waited = (never_ran ? now : record.started) - record.submitted;
  completion.ran = never_ran ? Nanos(0) : now - record.started;
  return completion;
}

void TransferQueue::GiveUp(Records::iterator at, TransferEnd end, Nanos now) {
  auto& [id, record] = *at;
  switch (record.phase) {
    case Phase::kWaiting: {
      TransferCompletion& completion = Post(id, record, end, StatusOf(end), now);
      completion.job = std::move(record.request.job);
      completion.staging = std::move(record.request.staging);
      LeaveClass(id, record.request);
      deadlines_.erase({record.request.deadline, id});
      records_.erase(at);
      return;
    }
    case Phase::kRunning:
      Post(id, record, end, StatusOf(end), now);
      record.phase = Phase::kQuarantined;
      record.stop.store(true, std::memory_order_relaxed);
      ++LaneOf(record.request).quarantined_jobs;
      deadlines_.erase({record.request.deadline, id});
      return;
    case Phase::kDelivering:
    case Phase::kQuarantined: return;
  }
}

void TransferQueue::Cancel(TransferId id, Nanos now) {
  const auto at = records_.find(id);
  if (at == records_.end()) return;
  if (at->second.phase == Phase::kDelivering) at->second.cancelled = true;
  GiveUp(at, TransferEnd::kCancelled, now);
}

void TransferQueue::Raise(TransferId id, TransferPriority priority) {
  const auto at = records_.find(id);
  if (at == records_.end() || at->second.phase != Phase::kWaiting) return;
  TransferRequest& request = at->second.request;
  if (request.priority <= priority) return;
  LeaveClass(id, request);
  request.priority = priority;
  EnterClass(id, request);
}

void TransferQueue::CancelAll(Nanos now) {
  for (auto at = records_.begin(); at != records_.end();) Cancel((at++)->first, now);
}

void TransferQueue::Expire(Nanos now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    GiveUp(records_.find(deadlines_.begin()->second), TransferEnd::kLate, now);
  }
}

TransferQueue::Lack TransferQueue::LackOf(const TransferRequest& request) const {
  const auto direction = static_cast<size_t>(request.direction);
  const uint64_t most = limits_.in_flight_bytes[direction];
  return {request.bytes > most - meters_.in_flight_bytes(request.direction) ||
              meters_.running_jobs(request.direction) >= limits_.running_jobs[direction],
          request.staging_bytes > 0 && !staging_.Fits(request.staging_bytes)};
}

// The first of each class is tried: where they were passed too often before all others, then by priority, then by age.
std::optional<TransferId> TransferQueue::Choose() const {
  struct Head {
    bool in_time;
    uint64_t rank;
    TransferId id;
    auto operator<=>(const Head&) const = default;
  };
  std::array<Head, kClasses> all;
  size_t count = 0;
  for (size_t i = 0; i < kClasses; ++i) {
    const JobClass& jobs = classes_[i];
    if (jobs.waiting.empty()) continue;
    const bool in_time = jobs.passed < kPatience;
    const uint64_t priority = i / (kTierNames.size() * kDirectionNames.size());
    all[count++] = {in_time, in_time ? priority : std::numeric_limits<uint32_t>::max() - jobs.passed,
                    *jobs.waiting.begin()};
  }
  const std::span<Head> heads = std::span(all).first(count);
  std::ranges::sort(heads);

  // What an overdue job waits for nobody else takes.
  std::array<bool, kDirectionNames.size()> direction_awaited{};
  bool staging_awaited = false;
  for (const Head& head : heads) {
    const TransferRequest& request = records_.at(head.id).request;
    const Lack lack = LackOf(request);
    bool& same_direction_awaited = direction_awaited[static_cast<size_t>(request.direction)];
    const bool barred = same_direction_awaited || (staging_awaited && request.staging_bytes > 0);
    if (!lack.direction && !lack.staging && !barred) return head.id;
    if (head.in_time) continue;
    same_direction_awaited |= lack.direction;
    staging_awaited |= lack.staging;
  }
  return std::nullopt;
}

std::optional<TransferQueue::Start> TransferQueue::StartNext(Nanos now) {
  Expire(now);
  const std::optional<TransferId> id = Choose();
  if (!id) return std::nullopt;
  Record& record = records_.at(*id);
  TransferRequest& request = record.request;
  LeaveClass(*id, request);
  for (JobClass& jobs : classes_) jobs.passed += !jobs.waiting.empty();
  ClassOf(request).passed = 0;
  if (request.staging_bytes > 0) request.staging = Staging(&home_, *staging_.Take(request.staging_bytes));
  record.phase = Phase::kRunning;
  record.started = now;
  TransferMeter& lane = LaneOf(request);
  lane.waited += now - record.submitted;
  lane.in_flight_bytes += request.bytes;
  if (++lane.running_jobs == 1) BusySince(request) = now;
  return Start{*id, request.job.get(), request.direction, request.bytes, request.staging.bytes(), &record.stop};
}

bool TransferQueue::BeginDelivery(TransferId id, Nanos now) {
  Expire(now);
  Record& record = records_.at(id);
  if (record.phase == Phase::kQuarantined) return false;
  record.phase = Phase::kDelivering;
  deadlines_.erase({record.request.deadline, id});
  return true;
}

void TransferQueue::Finish(TransferId id, Status status, Nanos now) {
  Expire(now);
  const auto at = records_.find(id);
  Record& record = at->second;
  TransferRequest& request = record.request;
  StopRunning(request, now);
  if (status.ok()) LaneOf(request).bytes += request.bytes;
  if (record.phase == Phase::kQuarantined) {
    --LaneOf(request).quarantined_jobs;
    posted_.over.emplace_back(std::move(request.job), std::move(request.staging));
    records_.erase(at);
    return;
  }
  TransferEnd end = status.ok() ? TransferEnd::kDone : TransferEnd::kFailed;
  if (record.cancelled) {
    end = TransferEnd::kCancelled;
    status = StatusOf(end);
  }
  TransferCompletion& completion = Post(id, record, end, std::move(status), now);
  completion.job = std::move(request.job);
  completion.staging = std::move(request.staging);
  deadlines_.erase({request.deadline, id});
  records_.erase(at);
}

TransferQueue::Posted TransferQueue::TakePosted() { return std::exchange(posted_, {}); }

std::optional<Nanos> TransferQueue::WakeAt() const {
  if (!posted_.completions.empty() || !posted_.over.empty()) return Nanos::min();
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

std::optional<Staging> TransferQueue::TakeStaging(uint64_t bytes) {
  for (const JobClass& jobs : classes_) {
    if (!jobs.waiting.empty() && LackOf(records_.at(*jobs.waiting.begin()).request).staging) return std::nullopt;
  }
  const std::optional<std::span<std::byte>> part = staging_.Take(bytes);
  if (!part) return std::nullopt;
  return Staging(&home_, *part);
}

TransferMeters TransferQueue::meters(Nanos now) const {
  TransferMeters meters = meters_;
  for (size_t link = 0; link < kTierNames.size(); ++link) {
    for (size_t direction = 0; direction < kDirectionNames.size(); ++direction) {
      TransferMeter& lane = meters.lanes[link][direction];
      if (lane.running_jobs > 0) lane.busy += now - busy_since_[link][direction];
    }
  }
  meters.staging_bytes = staging_.total_bytes();
  meters.staging_taken_bytes = staging_.taken_bytes();
  return meters;
}

std::vector<std::string> TransferQueue::Violations() const {
  std::vector<std::string> out;
  std::array<uint64_t, kDirectionNames.size()> in_flight{};
  size_t waiting = 0;
  uint32_t running = 0;
  uint64_t staging = 0;
  for (const auto& [id, record] : records_) {
    staging += record.request.staging.bytes().size();
    if (record.phase == Phase::kWaiting) {
      ++waiting;
    } else {
      ++running;
      in_flight[static_cast<size_t>(record.request.direction)] += record.request.bytes;
      const uint64_t held = record.request.staging.bytes().size();
      if (held < record.request.staging_bytes) out.push_back(fmt::format("job {} runs without its staging", id.value));
    }
  }
  size_t listed = 0;
  for (const JobClass& jobs : classes_) listed += jobs.waiting.size();
  uint32_t counted_running = 0;
  for (const auto& link : meters_.lanes) {
    for (const TransferMeter& lane : link) counted_running += lane.running_jobs;
  }
  if (listed != waiting || meters_.waiting_jobs() != waiting) out.push_back("waiting jobs differ from their count");
  if (counted_running != running) out.push_back("running jobs differ from their count");
  if (staging > staging_.taken_bytes() || staging_.taken_bytes() > staging_.total_bytes()) {
    out.push_back(fmt::format("jobs hold {} bytes of staging, {} of {} are taken", staging, staging_.taken_bytes(),
                              staging_.total_bytes()));
  }
  for (const Direction direction : {Direction::kUp, Direction::kDown}) {
    const auto i = static_cast<size_t>(direction);
    if (meters_.running_jobs(direction) > limits_.running_jobs[i]) out.push_back("more jobs run than may");
    if (in_flight[i] == meters_.in_flight_bytes(direction) && in_flight[i] <= limits_.in_flight_bytes[i]) continue;
    out.push_back(fmt::format("direction {}: {} bytes in flight, counted {}, limit {}", i, in_flight[i],
                              meters_.in_flight_bytes(direction), limits_.in_flight_bytes[i]));
  }
  return out;
}

}  // namespace cachalot::tier
