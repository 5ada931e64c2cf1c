// WriteBehind decides what KV is worth on its way down: which idle blocks are written to the disk before there is need,
// how fast, and what becomes of a block whose slot is needed.
// Threads:   owned by the engine thread.
// Ownership: none.
// Invariant: deterministic. WriteBudget: in any span of time no more is written than its rate allows, one burst and the
//            last write apart.
// Cost:      O(1).
//
// All is weighed in seconds that somebody waits. A block that is used again with probability p saves p * (recompute -
// load) by being in the tier; writing it takes the link for write_seconds, at a price per second.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.h"

namespace cachalot::sched {

struct ReuseView {
  double probability = 0;        // that it is used again before it is forgotten
  double recompute_seconds = 0;  // when it is in no tier
  double load_seconds = 0;       // from the lower tier
  double write_seconds = 0;      // to the lower tier; 0: it is there
};

// A block that is there for a time only, as clocks of one kind say it; Nanos::max(): for good.
struct LifeView {
  Nanos now{0};
  Nanos wanted_until{0};
  Nanos stored_until{0};      // of what the tier has of it; 0: nothing
  bool stored_whole = false;  // that is all that could be written
};

// Until when it is to be there once it is written now; nothing: it need not be written. What is wished again and again
// is not written as often: only once half of its time would be lost.
std::optional<Nanos> WriteUntil(const LifeView& view);

// A token bucket.
class WriteBudget {
 public:
  // No rate: no limit. A rate of 0: nothing is written. The bucket begins full.
  WriteBudget(std::optional<uint64_t> bytes_per_second, uint64_t burst_bytes);

  // Whether so many bytes may be written now; then they are charged. What exceeds the balance is paid for by waiting
  // afterwards, so that large writes are not shut out.
  bool Take(uint64_t bytes, Nanos now);

 private:
  const std::optional<uint64_t> bytes_per_second_;
  const double burst_bytes_;
  double balance_bytes_;
  Nanos now_{0};
};

struct CleanView {
  uint64_t evictable = 0;  // blocks
  uint64_t clean = 0;      // of them: a lower tier has them
  uint64_t copying = 0;    // of them: on their way there
};

// How many more to copy now so that at least `share` of the evictable blocks, from 0 to 1, can be evicted without
// writing.
uint64_t BlocksToClean(const CleanView& view, double share);

enum class WayDown : uint8_t { kKeep = 0, kHandDown = 1, kDrop = 2 };
inline constexpr std::array<std::string_view, 3> kWayDownNames = {"keep", "hand down", "drop"};

struct DownView {
  ReuseView reuse;
  double keep = 0;           // what it costs to leave it where it is; infinity: it has to go
  double write_price = 1;    // per second of writing
  bool lower_exists = true;  // and takes writes now
};

struct DownCosts {
  double keep = 0;
  std::optional<double> hand_down;
  double drop = 0;
  WayDown least = WayDown::kKeep;  // of equals the one that moves less: keep, then drop
};

DownCosts ChooseWayDown(const DownView& view);

}  // namespace cachalot::sched
