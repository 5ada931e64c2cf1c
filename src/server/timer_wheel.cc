#include "server/timer_wheel.h"

#include <algorithm>

namespace cachalot::server {

TimerWheel::TimerWheel(Nanos now, Nanos tick) : tick_(tick), current_tick_(now / tick), slots_(kSlots) {}

void TimerWheel::Append(Link* list, Link* item) {
  item->previous = list->previous;
  item->next = list;
  list->previous->next = item;
  list->previous = item;
}

void TimerWheel::Schedule(Timer* timer, Nanos deadline) {
  timer->Unlink();
  timer->deadline_ = deadline;
  // Rounded up, and never into a slot that Advance has left behind.
  const int64_t tick = std::max(current_tick_ + 1, (deadline + tick_ - Nanos(1)) / tick_);
  Append(&slots_[static_cast<size_t>(tick) % kSlots], timer);
}

void TimerWheel::CollectDue(Link* slot, Nanos now, Link* due) {
  for (Link* link = slot->next; link != slot;) {
    Link* const next = link->next;
    if (static_cast<Timer*>(link)->deadline_ <= now) {
      link->Unlink();
      Append(due, link);
    }
    link = next;
  }
}

void TimerWheel::Advance(Nanos now) {
  const int64_t target = now / tick_;
  Link due;
  const int64_t last = std::min(target, current_tick_ + static_cast<int64_t>(kSlots));
  for (int64_t tick = current_tick_ + 1; tick <= last; ++tick) {
    CollectDue(&slots_[static_cast<size_t>(tick) % kSlots], now, &due);
  }
  current_tick_ = std::max(current_tick_, target);
  while (due.linked()) {
    Timer* const timer = static_cast<Timer*>(due.next);
    timer->Unlink();
    const std::function<void()> fire = timer->fire_;  // the timer may be destroyed by its own call
    fire();
  }
}

}  // namespace cachalot::server
