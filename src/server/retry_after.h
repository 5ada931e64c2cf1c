// When a client that found the queue full may come again.
// Threads:   pure.
// Ownership: none.
// Invariant: between a second and an hour.
// Cost:      none.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace cachalot::server {

// The header's value for one who has that long to wait. Rounded up; what is no number is the shortest.
inline uint32_t RetryAfterSeconds(double wait_seconds) {
  constexpr double kMostSeconds = 3600;
  if (!(wait_seconds > 1)) return 1;
  return static_cast<uint32_t>(std::ceil(std::min(wait_seconds, kMostSeconds)));
}

}  // namespace cachalot::server
