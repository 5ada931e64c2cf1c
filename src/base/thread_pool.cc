#include "base/thread_pool.h"

#include "base/check.h"
#include "base/fp_env.h"

namespace cachalot {
namespace {

constexpr uint32_t kOpen = uint32_t{1} << 31;

// About 20 to 60 microseconds: longer than the gap between two kernels of a step, shorter than a scheduler's slice.
constexpr uint32_t kSpins = 1500;

void Relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns once `word` differs from `old`.
uint32_t AwaitChange(const std::atomic<uint32_t>& word, uint32_t old, uint32_t spins) {
  for (uint32_t i = 0; i < spins; ++i) {
    const uint32_t now = word.load(std::memory_order_acquire);
    if (now != old) return now;
    Relax();
  }
  word.wait(old, std::memory_order_acquire);
  return word.load(std::memory_order_acquire);
}

}  // namespace

// Spinning with more threads than processors only takes time from those that have work.
ThreadPool::ThreadPool(size_t threads) : spins_(threads <= std::thread::hardware_concurrency() ? kSpins : 0) {
  CACHALOT_CHECK(threads >= 1);
  workers_.reserve(threads - 1);
  for (size_t i = 1; i < threads; ++i) workers_.emplace_back([this] { WorkerMain(); });
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::ParallelFor(size_t tasks, Body body) {
  CACHALOT_CHECK(IsDefaultFpEnv());
  if (workers_.empty() || tasks <= 1) {
    for (size_t task = 0; task < tasks; ++task) body(task);
    return;
  }
  job_ = {&body, tasks};
  next_task_.store(0, std::memory_order_relaxed);
  state_.store(kOpen, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  RunTasks();
  CloseJob();
}

void ThreadPool::WorkerMain() {
  SetDefaultFpEnv();
  uint32_t seen = 0;
  while (true) {
    seen = AwaitChange(epoch_, seen, spins_);
    if (stopping_.load(std::memory_order_acquire)) return;
    if (!EnterJob()) continue;
    RunTasks();
    CACHALOT_CHECK(IsDefaultFpEnv());
    LeaveJob();
  }
}

void ThreadPool::RunTasks() {
  const Job job = job_;
  for (size_t task = next_task_.fetch_add(1, std::memory_order_relaxed); task < job.tasks;
       task = next_task_.fetch_add(1, std::memory_order_relaxed)) {
    (*job.body)(task);
  }
}

// A worker counts itself in only while the job is open, so one that wakes late finds it closed and touches nothing.
bool ThreadPool::EnterJob() {
  uint32_t state = state_.load(std::memory_order_relaxed);
  while ((state & kOpen) != 0) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire, std::memory_order_relaxed))
      return true;
  }
  return false;
}

void ThreadPool::LeaveJob() {
  const uint32_t before = state_.fetch_sub(1, std::memory_order_release);
  if (before == 1) state_.notify_one();
}

// All tasks are taken: lets nobody in any more and waits for those who are still at one.
void ThreadPool::CloseJob() {
  uint32_t state = state_.fetch_and(~kOpen, std::memory_order_acquire) & ~kOpen;
  while (state != 0) state = AwaitChange(state_, state, spins_);
}

}  // namespace cachalot
