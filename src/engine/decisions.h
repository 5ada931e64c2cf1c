// Decisions about where KV goes, as they are kept for whoever asks: from what they were made, and what came of them.
// Threads:   plain data of the engine thread.
// Ownership: none.
// Invariant: numbers ascend by one, from 1.
// Cost:      memory for the last 1,024 of a kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/ids.h"
#include "base/json.h"
#include "engine/session.h"
#include "sched/down_decision.h"
#include "sched/load_or_recompute.h"

namespace cachalot::engine {

// The last ones of what is numbered.
template <class T>
class Latest {
 public:
  static constexpr size_t kMost = 1024;

  // Returns its number.
  uint64_t Add(T one) {
    if (kept_.size() == kMost) kept_.pop_front();
    kept_.push_back(std::move(one));
    return ++last_;
  }
  // Null: it is not kept any more, or there was none.
  T* Find(uint64_t number) {
    const uint64_t first = last_ + 1 - kept_.size();
    return number < first || number > last_ ? nullptr : &kept_[number - first];
  }
  auto begin() const { return kept_.begin(); }
  auto end() const { return kept_.end(); }

 private:
  std::deque<T> kept_;
  uint64_t last_ = 0;
};

// How a request gets its KV.
struct ResumeRecord {
  RequestId request;
  std::optional<SessionName> session;
  Nanos at{0};
  sched::Decision decision;
};

// One whose first token came in the step before.
struct Decided {
  uint64_t number = 0;
  sched::ResumeOutcome outcome;
};

// Whether KV goes down.
struct DownRecord {
  std::optional<RequestId> request;  // that left a history
  std::optional<SessionName> session;
  Nanos at{0};
  sched::DownDecision decision;
};

// Arrays, the newest last.
Json DecisionsAsJson(const Latest<ResumeRecord>& records, Nanos now);
Json DecisionsAsJson(const Latest<DownRecord>& records, Nanos now);

}  // namespace cachalot::engine
