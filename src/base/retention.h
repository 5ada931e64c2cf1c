// RetentionHints are what a request asks for the KV that it leaves behind.
// Threads:   plain data.
// Ownership: none.
// Invariant: a hint changes what is kept, never an answer.
// Cost:      none.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace cachalot {

enum class RetentionPriority : uint8_t { kLow = 0, kNormal = 1, kHigh = 2 };

struct RetentionHints {
  RetentionPriority priority = RetentionPriority::kNormal;
  Nanos ttl = Nanos::max();  // from its last use on; then it goes without need. max: it is kept until there is need
  Nanos pin{0};              // from the end of the request on: it is not evicted for so long
  bool scrub = false;        // its memory is overwritten before it is free
  bool operator==(const RetentionHints&) const = default;
};

}  // namespace cachalot
