#include "tier/testing/transfer_rig.h"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "base/check.h"
#include "tier/testing/fake_transfer_engine.h"

namespace cachalot::tier {
namespace {

constexpr Nanos kLong = std::chrono::seconds(30);  // that nothing takes; a wait this long goes on to the next look

uint32_t RunningIn(const TransferMeters& meters) {
  uint32_t jobs = 0;
  for (const auto& link : meters.lanes) {
    for (const TransferMeter& lane : link) jobs += lane.running_jobs;
  }
  return jobs;
}

}  // namespace

void Gate::Open() {
  {
    MutexLock lock(mutex_);
    open_ = true;
  }
  opened_.NotifyAll();
}

void Gate::Pass() {
  MutexLock lock(mutex_);
  while (!open_) opened_.Wait(mutex_);
}

ScriptedJob::~ScriptedJob() { ++log->destroyed; }

Status ScriptedJob::Run(std::span<std::byte> staging, const std::atomic<bool>& stop) {
  ++log->started;
  if (gate != nullptr) gate->Pass();
  log->told_to_stop = stop.load();
  std::ranges::fill(staging, value);
  ++log->ran;
  return result;
}

void ScriptedJob::Deliver(std::span<const std::byte> staging) {
  CACHALOT_CHECK(std::ranges::all_of(staging, [&](std::byte b) { return b == value; }));
  std::ranges::fill(target, value);
  ++log->delivered;
}

TransferRig::TransferRig(Kind kind, const Limits& limits)
    : kind_(kind),
      staging_(HostArena::Claim({.bytes = limits.staging_bytes}, {uint64_t{1} << 40, uint64_t{1} << 40, false}, {})
                   .value()) {
  TransferOptions options;
  options.limits = {{limits.in_flight_bytes, limits.in_flight_bytes}, limits.waiting_jobs};
  options.threads = limits.threads;
  options.notify = [this] { (void)ended_.TryPush(0); };
  if (kind == Kind::kFake) {
    engine_ = std::make_unique<FakeTransferEngine>(staging_.bytes(), options, FakeTransferFaults(), clock_);
  } else {
    engine_ = MakeTransferEngine(staging_.bytes(), options, clock_).value();
  }
}

TransferRig::~TransferRig() { gate_.Open(); }

std::unique_ptr<ScriptedJob> TransferRig::HeldJob(std::shared_ptr<JobLog> log) {
  auto job = std::make_unique<ScriptedJob>(std::move(log));
  if (kind_ == Kind::kThreads) job->gate = &gate_;
  return job;
}

void TransferRig::WaitForRunning(uint32_t jobs) {
  while (RunningIn(engine_->meters()) < jobs) std::this_thread::yield();
}

void TransferRig::Progress() {
  if (RunningIn(engine_->meters()) == 0) return;
  if (kind_ == Kind::kThreads) {
    (void)ended_.WaitDrain(kLong);
  } else {
    clock_.SleepUntil(engine_->WakeAt().value_or(clock_.Now()));
  }
}

std::vector<TransferCompletion> TransferRig::Collect(size_t count) {
  std::vector<TransferCompletion> all;
  for (;;) {
    std::vector<TransferCompletion> some = engine_->Poll();
    std::ranges::move(some, std::back_inserter(all));
    if (all.size() >= count) return all;
    Progress();
  }
}

std::vector<TransferCompletion> TransferRig::CollectAll() {
  std::vector<TransferCompletion> all;
  for (;;) {
    const TransferMeters meters = engine_->meters();
    const bool idle = RunningIn(meters) == 0 && meters.waiting_jobs() == 0;
    std::vector<TransferCompletion> some = engine_->Poll();
    std::ranges::move(some, std::back_inserter(all));
    if (idle) return all;
    Progress();
  }
}

}  // namespace cachalot::tier
