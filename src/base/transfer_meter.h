// TransferMeter is what one link has moved in one direction, and what is under way there.
// Threads:   plain values.
// Ownership: none.
// Invariant: sums never fall.
// Cost:      none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/clock.h"

namespace cachalot {

enum class TransferEnd : uint8_t { kDone = 0, kFailed = 1, kCancelled = 2, kLate = 3 };
inline constexpr size_t kTransferEnds = 4;
inline constexpr std::array<std::string_view, kTransferEnds> kTransferEndNames = {"done", "failed", "cancelled",
                                                                                  "late"};

// Since the start.
struct TransferMeter {
  std::array<uint64_t, kTransferEnds> jobs{};  // by end
  uint64_t bytes = 0;                          // of those whose Run succeeded, late and cancelled ones too
  Nanos busy{0};                               // something ran
  Nanos waited{0};                             // summed over jobs that started
  uint32_t waiting_jobs = 0;                   // now, as what follows
  uint32_t running_jobs = 0;                   // quarantined ones included
  uint32_t quarantined_jobs = 0;
  uint64_t in_flight_bytes = 0;
};

}  // namespace cachalot
