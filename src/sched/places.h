// Places remembers which conversations are away, between an answer and their next turn, and keep their place.
// Threads:   owned by the engine thread.
// Ownership: none.
// Invariant: deterministic; knows at most 4,096 conversations, and none for longer than ten minutes.
// Cost:      O(log conversations).
//
// A place is kept for as long as nearly all take to come back, estimated as TCP estimates when an answer is overdue
// (RFC 6298): the smoothed gap and some times its mean deviation. A conversation is known for longer, to learn from
// those that come late.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/clock.h"

namespace cachalot::sched {

class Places {
 public:
  // Names a conversation by what it begins with; the next of the same name is taken for it.
  using Key = uint64_t;

  struct Return {
    bool kept = false;  // it was not away for too long
    Nanos since{0};     // it has had its place
  };

  // Its answer is complete, or was given up; so many slots hold its KV.
  void Leave(Key key, Nanos now, Nanos since, uint64_t slots);
  bool Knows(Key key) const { return away_.contains(key); }
  // Its next turn has come. Requires Knows(key).
  Return Come(Key key, Nanos now);
  // Those that are away for too long keep their place no more.
  void Expire(Nanos now);

  // Those that are away and keep their place; of their slots, all while most come back, else fewer.
  uint32_t kept() const { return static_cast<uint32_t>(kept_.size()); }
  uint64_t kept_slots() const;
  // Of those that go away, the share that comes back while it has its place.
  double return_share() const { return return_share_; }
  // For how long one does.
  Nanos kept_for() const;
  double gap_seconds() const { return gap_; }  // 0: nobody has come back yet

 private:
  struct Away {
    Nanos left{0};
    Nanos since{0};
    uint64_t slots = 0;
  };
  using ByTime = std::set<std::pair<Nanos, Key>>;
  // Whether it had one.
  bool LosePlace(const Away& away, Key key);
  void LearnReturn(bool returned);
  void ForgetOldest();

  std::unordered_map<Key, Away> away_;
  ByTime kept_, late_;
  uint64_t kept_slots_ = 0;
  double return_share_ = 1;         // until some did not come back
  bool learnt_ = false;             // of a gap
  double gap_ = 0, deviation_ = 0;  // seconds
};

}  // namespace cachalot::sched
