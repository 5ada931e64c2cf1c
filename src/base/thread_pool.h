// ThreadPool runs the tasks of a kernel on a fixed set of threads and joins them.
// Threads:   one thread at a time calls ParallelFor; tasks must not call it.
// Ownership: owns its threads; refers to the body only during the call.
// Invariant: each task runs once; all have ended when ParallelFor returns; every thread computes in the default
//            floating-point mode (base/fp_env.h), which the caller must have set too.
// Cost:      no allocation per call. A worker that the system has not scheduled yet is not waited for: whoever runs
//            takes the tasks. Idle workers spin for some microseconds, then sleep.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/function_ref.h"

namespace cachalot {

class ThreadPool {
 public:
  using Body = FunctionRef<void(size_t task)>;

  // `threads` counts the caller: 1 starts none. Requires threads >= 1.
  explicit ThreadPool(size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Calls body(0) ... body(tasks - 1), each once, in no fixed order. What the tasks wrote is visible afterwards.
  void ParallelFor(size_t tasks, Body body);

  size_t thread_count() const { return workers_.size() + 1; }

 private:
  struct Job {
    const Body* body;
    size_t tasks;
  };

  void WorkerMain();
  void RunTasks();
  bool EnterJob();
  void LeaveJob();
  void CloseJob();

  const uint32_t spins_;
  Job job_{};                                   // written by the caller while the job is closed and nobody is inside
  alignas(64) std::atomic<uint32_t> epoch_{0};  // counts jobs; workers sleep on it
  alignas(64) std::atomic<uint32_t> state_{0};  // kOpen | workers inside; the caller sleeps on it
  alignas(64) std::atomic<size_t> next_task_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

}  // namespace cachalot
