// EndListener passes on that a transfer has ended, to whoever wants to know now.
// Threads:   any.
// Ownership: outlives the transfer engine that calls notify().
// Invariant: a call that was replaced is not under way any more.
// Cost:      a lock.
#pragma once

#include <functional>
#include <utility>

#include "base/mutex.h"

namespace cachalot::tier {

class EndListener {
 public:
  void Set(std::function<void()> call) CACHALOT_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    call_ = std::move(call);
  }

  // For the transfer engine.
  std::function<void()> notify() {
    return [this] {
      MutexLock lock(mutex_);
      if (call_) call_();
    };
  }

 private:
  Mutex mutex_;
  std::function<void()> call_ CACHALOT_GUARDED_BY(mutex_);
};

}  // namespace cachalot::tier
