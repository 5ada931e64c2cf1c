// Clock gives the time to whoever needs it, through a constructor; nothing else in the project asks the system.
// Threads:   SteadyClock any; a ManualClock is advanced by one thread and may be read by others.
// Ownership: none.
// Invariant: Now() never goes back.
// Cost:      SteadyClock: one vDSO call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace cachalot {

using Nanos = std::chrono::nanoseconds;

constexpr double ToSeconds(Nanos t) { return static_cast<double>(t.count()) * 1e-9; }

// The moment `wait` from now (at most a century), for waiting on a condition variable.
std::chrono::steady_clock::time_point DeadlineIn(Nanos wait);

class Clock {
 public:
  virtual ~Clock() = default;
  // Time since an arbitrary fixed moment: for differences only.
  virtual Nanos Now() const = 0;
  // Wall-clock time since 1970-01-01 UTC; it may jump.
  virtual int64_t UnixSeconds() const = 0;
  // Returns once Now() >= moment. A ManualClock jumps there.
  virtual void SleepUntil(Nanos moment) = 0;
};

class SteadyClock final : public Clock {
 public:
  Nanos Now() const override;
  int64_t UnixSeconds() const override;
  void SleepUntil(Nanos moment) override;
};

// For tests and the simulator: time stands still until advanced. Both times move together, but that the wall clock may
// jump.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(int64_t unix_seconds_at_zero = 0) : unix_seconds_at_zero_(unix_seconds_at_zero) {}
  Nanos Now() const override { return Nanos(now_.load(std::memory_order_acquire)); }
  int64_t UnixSeconds() const override {
    return unix_seconds_at_zero_.load(std::memory_order_acquire) +
           std::chrono::duration_cast<std::chrono::seconds>(Now()).count();
  }
  void SleepUntil(Nanos moment) override;
  // Requires: d >= 0.
  void Advance(Nanos d);
  // Forwards or back.
  void JumpWallClock(int64_t seconds) { unix_seconds_at_zero_.fetch_add(seconds, std::memory_order_acq_rel); }

 private:
  std::atomic<int64_t> unix_seconds_at_zero_;
  std::atomic<Nanos::rep> now_{0};
};

}  // namespace cachalot
