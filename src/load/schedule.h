// Schedule decides which request is sent when: a deterministic state machine fed with the time and with what ended.
// Threads:   one thread.
// Ownership: owns its queue.
// Invariant: at most max_in_flight requests are under way and at most `requests` are ever handed out; a turn is handed
//            out only after the one before it has ended; ties go to the lower conversation.
// Cost:      O(log n) per request, n the conversations that are open.
//
// All times are since the beginning of the run.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <queue>
#include <vector>

#include "base/clock.h"
#include "base/random.h"

namespace cachalot::load {

// When conversations begin: with the end of others (closed loop), as a Poisson process, or at given times.
class Arrivals {
 public:
  static Arrivals ClosedLoop(uint32_t clients);
  static Arrivals Poisson(double per_second, uint64_t seed);
  static Arrivals At(std::vector<Nanos> times);

  // How many conversations there are from the beginning, each followed by another when it ends; 0: open loop.
  uint32_t clients() const { return clients_; }
  // Open loop: the next arrival. Nothing when there is none.
  std::optional<Nanos> Next();

 private:
  explicit Arrivals(uint64_t seed) : random_(seed) {}
  uint32_t clients_ = 0;
  double mean_gap_ns_ = 0;
  double last_ns_ = 0;
  std::vector<Nanos> times_;
  size_t used_ = 0;
  SplitMix64 random_;
};

struct ScheduleLimits {
  uint64_t sessions = std::numeric_limits<uint64_t>::max();
  uint64_t requests = std::numeric_limits<uint64_t>::max();
  Nanos duration = Nanos::max();  // a request that is due at or after it is not sent
  uint32_t max_in_flight = 4096;
};

struct TurnStart {
  Nanos due{0};
  uint64_t session = 0;
  uint32_t turn = 0;
  auto operator<=>(const TurnStart&) const = default;
};

class Schedule {
 public:
  // A client whose request failed waits so long, so that a server that refuses all is not flooded.
  static constexpr Nanos kPauseAfterFailure = std::chrono::milliseconds(100);

  Schedule(Arrivals arrivals, const ScheduleLimits& limits);

  // The next request to send now; it is under way from then on.
  std::optional<TurnStart> Take(Nanos now);
  // When Take will have something, unless a request ends before. Nothing: only the end of a request can bring one.
  std::optional<Nanos> NextDue() const;
  // The request of this conversation has ended, and the next turn follows after `think`.
  void ContinueAfter(const TurnStart& ended, Nanos now, Nanos think);
  // ... and with it the conversation.
  void EndSession(Nanos now, bool failed);

  // Nothing is under way and nothing will be.
  bool done() const { return in_flight_ == 0 && queue_.empty(); }
  uint32_t in_flight() const { return in_flight_; }
  uint64_t taken() const { return taken_; }

 private:
  void Add(const TurnStart& start);
  void AddSession(Nanos due);
  void AddArrival();

  Arrivals arrivals_;
  const ScheduleLimits limits_;
  std::priority_queue<TurnStart, std::vector<TurnStart>, std::greater<>> queue_;
  uint64_t sessions_ = 0;
  uint64_t taken_ = 0;
  uint32_t in_flight_ = 0;
};

}  // namespace cachalot::load
