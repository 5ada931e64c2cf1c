// PackingPays says whether a tier is faster when its KV is packed.
// Threads:   pure.
// Ownership: none.
// Invariant: what does not shrink never pays.
// Cost:      O(1).
#pragma once

#include <algorithm>

#include "base/tier_rate.h"

namespace cachalot::cost {

// Of a codec, measured on KV of the model at hand.
struct PackingSpeed {
  double ratio = 1;                      // raw bytes over packed bytes
  double unpacked_bytes_per_second = 1;  // raw bytes, of all threads that unpack together
  bool overlapped = false;               // runs are unpacked while the next ones arrive
};

// By what a raw byte takes to come up through a link: what goes down is written when there is time.
constexpr bool PackingPays(const TierRate& up, const PackingSpeed& speed) {
  const double raw = 1 / up.bytes_per_second;
  const double packed = raw / speed.ratio, unpacking = 1 / speed.unpacked_bytes_per_second;
  return (speed.overlapped ? std::max(packed, unpacking) : packed + unpacking) < raw;
}

}  // namespace cachalot::cost
