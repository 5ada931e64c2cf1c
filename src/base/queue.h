// Queue<T> hands values from any number of threads to others, in order.
// Threads:   any, on both ends. Its lock is a leaf: nothing else is acquired while it is held.
// Ownership: items are moved in and out; nothing inside escapes by reference.
// Invariant: at most `capacity` items; after Close() nothing enters, and what is inside can still be taken.
// Cost:      one lock per call; Drain() takes everything with one.
#pragma once

#include <cstddef>
#include <deque>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace cachalot {

template <class T>
class Queue {
 public:
  static constexpr size_t kUnbounded = std::numeric_limits<size_t>::max();

  explicit Queue(size_t capacity = kUnbounded) : capacity_(capacity) {}

  // Waits for room. False, leaving `item` as it was, when the queue is closed.
  bool Push(T&& item) CACHALOT_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      while (!closed_ && items_.size() >= capacity_) has_room_.Wait(mutex_);
      if (closed_) return false;
      items_.push_back(std::move(item));
    }
    has_items_.NotifyOne();
    return true;
  }

  // False, leaving `item` as it was, when the queue is full or closed.
  bool TryPush(T&& item) CACHALOT_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      if (closed_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(item));
    }
    has_items_.NotifyOne();
    return true;
  }

  // Waits for an item; nothing once the queue is closed and empty.
  std::optional<T> WaitPop() CACHALOT_EXCLUDES(mutex_) {
    std::optional<T> item;
    {
      MutexLock lock(mutex_);
      while (!closed_ && items_.empty()) has_items_.Wait(mutex_);
      if (items_.empty()) return std::nullopt;
      item.emplace(std::move(items_.front()));
      items_.pop_front();
    }
    has_room_.NotifyOne();
    return item;
  }

  // Everything that is inside now.
  std::vector<T> Drain() CACHALOT_EXCLUDES(mutex_) {
    std::deque<T> taken;
    {
      MutexLock lock(mutex_);
      taken.swap(items_);
    }
    has_room_.NotifyAll();
    return {std::make_move_iterator(taken.begin()), std::make_move_iterator(taken.end())};
  }

  // Drain(), after waiting until there is an item, the queue is closed, or `limit` is over.
  std::vector<T> WaitDrain(Nanos limit) CACHALOT_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      const auto deadline = DeadlineIn(limit);
      while (!closed_ && items_.empty() && has_items_.WaitUntil(mutex_, deadline)) {
      }
    }
    return Drain();
  }

  void Close() CACHALOT_EXCLUDES(mutex_) {
    {
      MutexLock lock(mutex_);
      closed_ = true;
    }
    has_items_.NotifyAll();
    has_room_.NotifyAll();
  }

  bool closed() const CACHALOT_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return closed_;
  }

  size_t item_count() const CACHALOT_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return items_.size();
  }

 private:
  const size_t capacity_;
  mutable Mutex mutex_;
  CondVar has_items_;
  CondVar has_room_;
  std::deque<T> items_ CACHALOT_GUARDED_BY(mutex_);
  bool closed_ CACHALOT_GUARDED_BY(mutex_) = false;
};

}  // namespace cachalot
