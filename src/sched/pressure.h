// Pressure averages how it stood with those that wait for KV.
// Threads:   owned by the engine thread.
// Ownership: none.
// Invariant: deterministic; what KvPressure promises holds.
// Cost:      O(1).
#pragma once

#include "base/kv_pressure.h"

namespace cachalot::sched {

class Pressure {
 public:
  // So it was for `elapsed`. `full` implies `some`.
  void Observe(Nanos elapsed, bool some, bool full);
  const KvPressure& levels() const { return levels_; }

 private:
  KvPressure levels_;
};

}  // namespace cachalot::sched
