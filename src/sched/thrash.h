// Thrash finds out when more conversations take turns in the pool than it can hold, so that each evicts what another
// comes back for, and says how much KV those that take part may have: additive increase, multiplicative decrease, as
// TCP shares a link (Chiu and Jain, 1989) and CONCUR admits agents.
// Threads:   owned by the engine thread.
// Ownership: none.
// Invariant: a deterministic function of what it observed. Without refaults, or while nobody waits, no limit comes up;
//            a limit goes when nobody has waited for a place for a minute.
// Cost:      O(1).
//
// It is thrash when refaults (tokens computed again because their KV was evicted not long ago; Linux's workingset
// refaults) make up much of what is computed while requests wait for room. A limit has a price: conversations that have
// a place hold it while their clients think. So one comes up only where those that fit would get through clearly faster
// than all do now, by Little's law and by what is computed in vain.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "sched/pressure.h"

namespace cachalot::sched {

// What happened since the last one, and how it stands.
struct ThrashInput {
  Nanos now{0};
  uint64_t computed_tokens = 0;
  uint64_t refault_tokens = 0;  // of them

  uint32_t finished = 0;    // requests
  Nanos ran{0};             // how long they did, together
  uint64_t held_slots = 0;  // what they held in the end, together
  double gap_seconds = 0;   // from an answer to the conversation's next turn, as is usual
  double return_share = 1;  // of the conversations that come to a next turn

  uint64_t taken_slots = 0;  // of the conversations that take part
  uint32_t outside = 0;      // requests that wait for a place
  bool some_wait = false;    // requests wait for room or a place
  bool all_wait = false;     // and those that run compute what was lost
};

class Thrash {
 public:
  explicit Thrash(uint64_t pool_slots) : pool_slots_(pool_slots) {}

  void Observe(const ThrashInput& input);

  // Slots that the KV of those that take part may have; none: they all may.
  std::optional<uint64_t> limit() const { return limit_; }
  uint64_t decreases() const { return decreases_; }
  // Of what was computed of late.
  double refault_share() const;
  const KvPressure& pressure() const { return pressure_.levels(); }

 private:
  void Learn(const ThrashInput& input, double seconds);
  double Fitting() const;
  bool Pays(const ThrashInput& input) const;
  void Move(const ThrashInput& input);

  const uint64_t pool_slots_;
  Pressure pressure_;
  Nanos now_{0};
  // Of the last minute or so.
  double computed_ = 0, refaults_ = 0;  // tokens
  double finish_rate_ = 0;              // requests per second
  double run_seconds_ = 0;              // of one
  double conversation_slots_ = 0;       // of one

  std::optional<uint64_t> limit_;
  Nanos moved_{0};         // when it last changed
  Nanos last_outside_{0};  // when somebody last waited for a place
  uint64_t decreases_ = 0;
};

}  // namespace cachalot::sched
