// When a client that found the queue full may come again, by how fast requests have been finishing.
// Threads:   I/O thread; RetryAfterSeconds is a pure function.
// Ownership: none.
// Invariant: between 1 and 60 seconds.
// Cost:      a note is O(1); memory is one count per second of the last minute.
#pragma once

#include <cstdint>
#include <deque>

#include "base/clock.h"

namespace cachalot::server {

// The time in which `waiting` requests finish when `finished` did in `window`, in seconds, rounded up.
uint32_t RetryAfterSeconds(uint64_t waiting, uint64_t finished, Nanos window);

// How many requests finished in the last minute, to the second.
class FinishRate {
 public:
  explicit FinishRate(Nanos now) : started_(now) {}

  // `total` have finished so far.
  void Note(Nanos now, uint64_t total);
  uint32_t RetryAfter(Nanos now, uint64_t waiting) const;

 private:
  struct Mark {
    Nanos time;      // of the first note of a second
    uint64_t total;  // after the last one
  };
  const Nanos started_;
  std::deque<Mark> marks_;  // of those older than a minute only the newest
};

}  // namespace cachalot::server
