// WriteHealth decides, from how writes went, whether the next is worth a try.
// Threads:   belongs to one.
// Ownership: keeps the last failure.
// Invariant: degraded after `failures_until_degraded` in a row, until one succeeds; then one try per `retry_after`.
// Cost:      a comparison.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/status.h"

namespace cachalot::tier {

class WriteHealth {
 public:
  WriteHealth(uint32_t failures_until_degraded, Nanos retry_after)
      : failures_until_degraded_(failures_until_degraded), retry_after_(retry_after) {}

  // OK, or why writes are given up for the time being.
  Status health() const {
    if (failures_ < failures_until_degraded_) return OkStatus();
    return Unavailable(fmt::format("degraded after {} failed writes in a row: {}", failures_, last_.message()));
  }
  bool MayWrite(Nanos now) const { return failures_ < failures_until_degraded_ || now >= retry_at_; }

  Status Note(Status outcome, Nanos now) {
    if (outcome.ok()) {
      failures_ = 0;
    } else {
      ++failures_;
      retry_at_ = now + retry_after_;
      last_ = outcome;
    }
    return outcome;
  }

 private:
  const uint32_t failures_until_degraded_;
  const Nanos retry_after_;
  uint32_t failures_ = 0;
  Nanos retry_at_{0};
  Status last_;
};

}  // namespace cachalot::tier
