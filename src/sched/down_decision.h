// DownDecision is what was decided about KV on its way down: whether it stays, goes to a tier or is dropped, from what,
// and what came of it.
// Threads:   plain data and pure functions.
// Ownership: owns a copy of what it was made from.
// Invariant: equal views give equal decisions.
// Cost:      O(1).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/tier_rate.h"
#include "sched/write_behind.h"

namespace cachalot::sched {

// What may go down to a tier.
struct DownKv {
  TierId tier = TierId::kHost;
  uint64_t first_token = 0;
  uint64_t tokens = 0;
  uint64_t blocks = 0;
  uint64_t bytes = 0;  // that would be written
};

enum class DownReason : uint8_t {
  kLeastCost = 0,     // in seconds that somebody waits
  kAskedFor = 1,      // a session is suspended: whatever that costs
  kNeededAtOnce = 2,  // nobody waits for copies out of its slots
  kNoRoom = 3,        // to go down would cost least, but the tier has no room for it
};
inline constexpr std::array<std::string_view, 4> kDownReasonNames = {"least cost", "asked for", "needed at once",
                                                                     "no room"};

// Blocks of which it is known what became.
struct DownOutcome {
  uint64_t written_blocks = 0;
  uint64_t failed_blocks = 0;
  uint64_t skipped_blocks = 0;  // they are there already, or are neither hot nor wanted down there any more
  uint64_t all() const { return written_blocks + failed_blocks + skipped_blocks; }
};

struct DownDecision {
  DownKv kv;
  DownView view;
  DownCosts costs;
  WayDown way = WayDown::kKeep;
  DownReason reason = DownReason::kLeastCost;
  DownOutcome outcome;  // of what goes down; known once all blocks are in it
};

// The way that costs least; down if it is asked for.
DownDecision DecideDown(const DownKv& kv, const DownView& view, DownReason reason);

// For the log, one line, e.g. "disk: hand down (least cost): 96 tokens from 0, 6 blocks of 98304 bytes; ...".
std::string DecisionLine(const DownDecision& decision);
Json DecisionAsJson(const DownDecision& decision);

}  // namespace cachalot::sched
