// TextWorkers are the threads that parse, render and tokenize, away from the I/O thread.
// Threads:   Submit and Stop from any thread; jobs run on the workers.
// Ownership: owns the threads and the jobs that wait.
// Invariant: large jobs run one at a time, on the first worker only: with two workers or more a small job never waits
//            behind a large one. Jobs of one size class start in order.
// Cost:      one lock per job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace cachalot::server {

class TextWorkers {
 public:
  using Job = std::function<void()>;
  static constexpr size_t kLargeBytes = 64 * 1024;

  explicit TextWorkers(uint32_t threads);
  ~TextWorkers();  // Stop()

  // `bytes` is the size of what the job works on.
  void Submit(size_t bytes, Job job) CACHALOT_EXCLUDES(mutex_);
  // Waits for the jobs that run; those that wait are dropped, and so is what is submitted later.
  void Stop() CACHALOT_EXCLUDES(mutex_);

 private:
  void Main(bool takes_large);
  bool Take(bool takes_large, Job* job) CACHALOT_EXCLUDES(mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::deque<Job> small_ CACHALOT_GUARDED_BY(mutex_);
  std::deque<Job> large_ CACHALOT_GUARDED_BY(mutex_);
  bool last_was_large_ CACHALOT_GUARDED_BY(mutex_) = false;  // of the first worker
  bool stopping_ CACHALOT_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace cachalot::server
