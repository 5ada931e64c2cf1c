// ProfileTraffic says what a trace asks of a cache: how long texts are, how much of them had been there before, where
// requests of a kind stop being alike, and who comes back when.
// Threads:   a pure function, and plain data.
// Ownership: none.
// Invariant: reusable + edited + moved + new tokens = the tokens of all prompts.
// Cost:      linear in the requests, and in the text of those that lost some.
//
// All of it is what the trace says by itself: as if each request were answered before the next comes, and nothing were
// ever evicted.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "sim/overlap.h"
#include "sim/trace.h"

namespace cachalot::sim {

struct CountSpread {
  uint64_t p50 = 0, p90 = 0, p99 = 0, most = 0;
};
// The least value that so many of all are not above. Zeros without values.
CountSpread SpreadOf(std::vector<uint64_t> values);

// Requests that share their first `position` tokens, and go on each in its own way.
struct Divergence {
  uint64_t position = 0;
  uint64_t requests = 0;         // the first of them not counted
  Change change = Change::kNew;  // of most of the tokens that were lost
  uint64_t changed_tokens = 0;   // median of those that differ until texts are alike again; of kEdited
  uint64_t values = 0;           // different ones of those
  uint64_t lost_tokens = 0;      // that an earlier request had too, behind the change
  uint64_t tokens_behind = 0;    // of their prompts
};

// A request that goes on from an earlier one, by their places in the trace.
struct Return {
  uint32_t earlier = 0;
  uint32_t later = 0;
};

struct TrafficProfile {
  uint64_t requests = 0;
  Nanos span{0};                       // from the first arrival to the last
  CountSpread input, output, context;  // tokens; context is both together
  uint64_t prompt_tokens = 0;
  uint64_t output_tokens = 0;
  uint64_t asked_most = 0;              // of output, that a request allowed; 0: not known
  uint32_t position_tokens = 1;         // positions are multiples of this: 1, or a block of the trace
  bool text_known = false;              // else nothing can be said about text that stands elsewhere
  uint64_t reusable_tokens = 0;         // of prompts: a prefix that an earlier request had, as prompt or answer
  uint64_t edited_tokens = 0;           // lost to a few changed tokens before them
  uint64_t moved_tokens = 0;            // lost to another order
  std::vector<Divergence> divergences;  // most lost first, then most requests; kMostDivergences of them
  std::vector<Return> returns;
  uint64_t sessions = 0;  // named ones
  uint64_t tenants = 0;
  double largest_tenant = 0;  // share of the requests

  uint64_t new_tokens() const { return prompt_tokens - reusable_tokens - edited_tokens - moved_tokens; }
};

inline constexpr size_t kMostDivergences = 8;

TrafficProfile ProfileTraffic(const Trace& trace, const Overlap& overlap);

}  // namespace cachalot::sim
