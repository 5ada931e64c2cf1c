// KvPressure: in which share of the time requests were held up for want of KV, as Linux tells it of memory (pressure
// stall information).
// Threads:   plain data.
// Ownership: none.
// Invariant: shares are in [0, 1]; full never exceeds some.
// Cost:      none.
#pragma once

#include <array>
#include <string_view>

#include "base/clock.h"

namespace cachalot {

// How long a moment counts, in seconds: after that time for about a third of what it did.
inline constexpr std::array<double, 3> kPressureSeconds = {10, 60, 300};
inline constexpr std::array<std::string_view, kPressureSeconds.size()> kPressureNames = {"10", "60", "300"};

struct KvPressure {
  struct Level {
    std::array<double, kPressureSeconds.size()> shares{};
    Nanos total{0};
  };
  Level some;  // requests wait for room
  Level full;  // and those that run get nowhere either: they compute what was lost
};

}  // namespace cachalot
