// RingPool has several places of a file read at once, by io_uring: the disk gets all reads together.
// Threads:   any; a ring serves one call at a time.
// Ownership: owns its rings; a call borrows file and memory.
// Invariant: when a call returns no read of it is under way, whatever failed: nothing is written to its memory later.
//            What could not be read is simply not there: whoever calls reads that again otherwise, and learns why.
// Cost:      one system call for up to 64 places; a ring is made at the first call for which none is idle, and kept.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/thread_annotations.h"

namespace cachalot {

// What lies in a file from `offset` on goes into `into`, one part after the other.
struct PlaceRead {
  uint64_t offset = 0;
  std::span<const iovec> into;
  uint64_t read_bytes = 0;  // the outcome: how much came in one go; 0 also where nothing was tried or reading failed
};

class Ring {
 public:
  virtual ~Ring() = default;
  // Sets `read_bytes` of each place. False: the ring is not to be used again. Either way no read is under way then.
  virtual bool Read(int fd, std::span<PlaceRead> places) = 0;
};

using RingMaker = std::function<Result<std::unique_ptr<Ring>>()>;

// One by io_uring that has read something. kUnavailable, with what the system said, where that does not work.
Result<std::unique_ptr<Ring>> MakeRing();

class RingPool {
 public:
  // Makes the first ring at once.
  RingPool(RingMaker make, size_t most_rings);

  // Why there is not one ring.
  const Status& status() const { return status_; }
  // Sets `read_bytes`, which is 0 before. Does not wait for a ring: without one nothing is read.
  void Read(int fd, std::span<PlaceRead> places);

 private:
  std::unique_ptr<Ring> Take() CACHALOT_EXCLUDES(mutex_);
  void GiveBack(std::unique_ptr<Ring> ring) CACHALOT_EXCLUDES(mutex_);

  const RingMaker make_;
  Status status_;
  Mutex mutex_;
  size_t most_rings_ CACHALOT_GUARDED_BY(mutex_);
  size_t rings_ CACHALOT_GUARDED_BY(mutex_) = 0;  // idle and lent
  std::vector<std::unique_ptr<Ring>> idle_ CACHALOT_GUARDED_BY(mutex_);
};

}  // namespace cachalot
