// Mutex, MutexLock and CondVar: the standard ones with thread-safety annotations.
// Threads:   any.
// Ownership: a MutexLock holds its Mutex until it is destroyed.
// Invariant: a Mutex is not recursive.
// Cost:      those of std::mutex and std::condition_variable.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/thread_annotations.h"

namespace cachalot {

class CACHALOT_CAPABILITY("mutex") Mutex {
 public:
  void Lock() CACHALOT_ACQUIRE() { mutex_.lock(); }
  void Unlock() CACHALOT_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class CACHALOT_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) CACHALOT_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() CACHALOT_RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits may end without a notification: call them in a loop over the condition.
class CondVar {
 public:
  void Wait(Mutex& mutex) CACHALOT_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    lock.release();
  }
  // False when the time is over.
  bool WaitUntil(Mutex& mutex, std::chrono::steady_clock::time_point deadline) CACHALOT_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    const bool in_time = changed_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }
  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace cachalot
