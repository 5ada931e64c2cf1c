// JudgeLive says what holds a running server back, as far as two readings of its metrics tell.
// Threads:   plain data and pure functions.
// Ownership: none.
// Invariant: equal readings give equal findings. Nothing is simulated, so nothing is said of what a change would gain.
// Cost:      microseconds.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/scrape.h"
#include "base/status.h"

namespace cachalot::plan {

struct LiveWindow {
  Scrape before, after;
  Scrape between;  // what was added
  double seconds = 0;

  // kUnavailable when the server began anew in between. Requires seconds > 0.
  static Result<LiveWindow> Of(Scrape before, Scrape after, double seconds);
};

// In ratios of the window's time, but for those whose whole is named.
struct LiveShares {
  double compute = 0, other = 0, transfers = 0, idle = 0;  // of the engine's thread
  double pressure_some = 0, pressure_full = 0;             // some, all requests waited for KV
  double hits = 0;                                         // of the prompts' tokens
  double refaults = 0;                                     // of what was computed
  double in_use = 0;                                       // of the pool, the larger of both readings
  double waste = 0;                                        // of the bytes in blocks, at the end
  // Of computing, as the learnt cost of steps divides it.
  double by_step = 0, by_row = 0, by_attention = 0;
};
LiveShares SharesOf(const LiveWindow& window);

// What is found to hold it back, or why nothing is.
enum class LiveBound : uint8_t {
  kNobodyThere,    // no request came or ran
  kNothing,        // nobody waits
  kCapacity,       // requests wait for KV
  kFragmentation,  // they do, and much of what blocks take holds no token
  kRecomputation,  // much of what is computed had been computed before, and was lost
  kTransfers,      // steps wait for KV of lower tiers
  kCaps,           // those that wait may not run: caps of their tenants
  kCompute,        // the machine is busy, mostly with rows
  kBandwidth,      // the machine is busy, mostly with reading weights and KV
  kUnclear,        // requests wait, and none of these shows
};

struct LiveFinding {
  LiveBound bound = LiveBound::kUnclear;
  bool growing = false;  // more wait at the end than at the beginning
  LiveShares shares;
};
LiveFinding JudgeLive(const LiveWindow& window);

inline constexpr double kMuchPressure = 0.1;    // of the time
inline constexpr double kManyRefaults = 0.2;    // of what is computed
inline constexpr double kMuchWaste = 0.25;      // of the bytes in blocks
inline constexpr double kMuchTransfers = 0.2;   // of the time
inline constexpr double kBusy = 0.9;            // of the time
inline constexpr double kMostlyWaiting = 0.75;  // of the requests that wait

}  // namespace cachalot::plan
