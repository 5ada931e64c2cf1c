// TimerWheel keeps many coarse deadlines that are set, moved and dropped far more often than they pass.
// Threads:   one thread.
// Ownership: borrows the timers; a timer leaves the wheel when it is destroyed.
// Invariant: a timer fires at most once per Schedule, at the first Advance at or after its deadline.
// Cost:      Schedule and Cancel are O(1); Advance visits the slots that passed.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace cachalot::server {

class TimerWheel {
 private:
  struct Link {
    Link* previous = this;
    Link* next = this;
    bool linked() const { return next != this; }
    void Unlink() {
      previous->next = next;
      next->previous = previous;
      previous = next = this;
    }
  };

 public:
  class Timer : private Link {
   public:
    explicit Timer(std::function<void()> fire) : fire_(std::move(fire)) {}
    ~Timer() { Cancel(); }
    Timer(const Timer&) = delete;
    Timer& operator=(const Timer&) = delete;

    void Cancel() { Unlink(); }
    bool scheduled() const { return linked(); }

   private:
    friend class TimerWheel;
    std::function<void()> fire_;
    Nanos deadline_{0};
  };

  // `tick` is the grain: a timer may fire that much late. Requires: tick > 0.
  TimerWheel(Nanos now, Nanos tick);
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  // Moves the timer if it is scheduled already.
  void Schedule(Timer* timer, Nanos deadline);
  // Fires what is due; firing may schedule, cancel and destroy timers.
  void Advance(Nanos now);

 private:
  static constexpr size_t kSlots = 512;

  void CollectDue(Link* slot, Nanos now, Link* due);
  static void Append(Link* list, Link* item);

  const Nanos tick_;
  int64_t current_tick_;
  std::vector<Link> slots_;
};

}  // namespace cachalot::server
