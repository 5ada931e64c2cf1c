// TransferRig is a transfer engine, real or fake, with jobs whose progress a test decides.
// Threads:   owned by the test's thread; jobs run on the engine's.
// Ownership: owns engine, clock and staging memory.
// Invariant: time stands still but for Advance() and, with the fake, Progress().
// Cost:      none to speak of.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/queue.h"
#include "tier/host_arena.h"
#include "tier/transfer_engine.h"

namespace cachalot::tier {

// Jobs wait at a closed gate.
class Gate {
 public:
  void Open() CACHALOT_EXCLUDES(mutex_);
  void Pass() CACHALOT_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  CondVar opened_;
  bool open_ CACHALOT_GUARDED_BY(mutex_) = false;
};

// What a job did, for as long as anybody asks.
struct JobLog {
  std::atomic<int> started{0};
  std::atomic<int> ran{0};
  std::atomic<int> delivered{0};
  std::atomic<int> destroyed{0};
  std::atomic<bool> told_to_stop{false};
};

// Fills its staging in Run, and copies it to `target` in Deliver.
struct ScriptedJob final : TransferJob {
  explicit ScriptedJob(std::shared_ptr<JobLog> its_log) : log(std::move(its_log)) {}
  ~ScriptedJob() override;
  Status Run(std::span<std::byte> staging, const std::atomic<bool>& stop) override;
  void Deliver(std::span<const std::byte> staging) override;

  std::shared_ptr<JobLog> log;
  Gate* gate = nullptr;  // null: does not wait
  Status result;
  std::byte value{0};
  std::span<std::byte> target;
};

class TransferRig {
 public:
  enum class Kind : uint8_t { kThreads, kFake };
  struct Limits {
    uint64_t staging_bytes = 16 * StagingPool::kPage;
    uint64_t in_flight_bytes = 1000;
    uint32_t waiting_jobs = 100;
    uint32_t threads = 2;
  };

  TransferRig(Kind kind, const Limits& limits);
  ~TransferRig();

  TransferEngine& engine() { return *engine_; }
  Nanos now() const { return clock_.Now(); }
  void Advance(Nanos d) { clock_.Advance(d); }

  // A job that runs until LetGo(); with the fake, that has not come to its end before.
  std::unique_ptr<ScriptedJob> HeldJob(std::shared_ptr<JobLog> log);
  void LetGo() { gate_.Open(); }

  // Returns once so many jobs run.
  void WaitForRunning(uint32_t jobs);
  // Waits until something more has ended, if anything runs.
  void Progress();
  // Polls until so many completions have come.
  std::vector<TransferCompletion> Collect(size_t count);
  // Polls until nothing waits and nothing runs.
  std::vector<TransferCompletion> CollectAll();

 private:
  const Kind kind_;
  ManualClock clock_;
  HostArena staging_;
  Queue<int> ended_;
  Gate gate_;
  std::unique_ptr<TransferEngine> engine_;
};

}  // namespace cachalot::tier
