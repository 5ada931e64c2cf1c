// StopCondition watches one sequence's tokens and says when its text is complete: implemented over text, run by the
// engine after each sampled token.
// Threads:   one sequence, engine thread.
// Ownership: the engine owns one per sequence.
// Invariant: deterministic in the tokens pushed.
// Cost:      linear in the bytes of a token.
#pragma once

#include <functional>
#include <memory>

#include "base/ids.h"

namespace cachalot {

class StopCondition {
 public:
  virtual ~StopCondition() = default;
  // True when the text now contains a stop string; no further call follows.
  virtual bool Push(TokenId token) = 0;
};

// Makes one condition per sequence of a request; empty: nothing to watch.
using StopConditionFactory = std::function<std::unique_ptr<StopCondition>()>;

}  // namespace cachalot
