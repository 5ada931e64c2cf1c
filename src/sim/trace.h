// Trace is a list of requests: when, how long, and what of their text is the same.
// Threads:   plain data and pure functions.
// Ownership: none.
// Invariant: of a trace that was read or generated: arrivals do not go back; a request has one id per block of its
//            input, the last one perhaps unfilled; an id stands for its block and all before it, so it always follows
//            the same id.
// Cost:      linear in the text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace cachalot::sim {

// Tokens of a source from `begin` on: equal places of equal sources are equal tokens. The source is a number, whose
// tokens are a function of it (trace_text.h), or kPool: words that stand in Trace::pool.
struct TextRun {
  static constexpr uint64_t kPool = UINT64_MAX;
  uint64_t source = kPool;
  uint64_t begin = 0;
  uint64_t tokens = 0;
  bool operator==(const TextRun&) const = default;
};

struct TraceRequest {
  Nanos arrival{0};
  uint64_t input_tokens = 0;
  uint64_t output_tokens = 0;
  uint64_t asked_tokens = 0;  // of output, that it allowed; 0: not known
  std::vector<uint64_t> blocks;
  // Of the prompt, then as much of the answer as is known. Empty: all that is known of it is `blocks`.
  std::vector<TextRun> text;
  uint64_t session = 0;  // that it belongs to; 0: none is known
  uint64_t tenant = 0;   // who asked; 0: not known
};

struct Trace {
  uint32_t block_tokens = 512;
  // Words of `pool` are chained: equal only where all before them in the request is equal too.
  bool chained = false;
  std::vector<TraceRequest> requests;
  std::vector<uint32_t> pool;  // of the requests' text
};

// Takes the requests of a trace one by one, in order, as they are read or made, and of how many tokens their blocks
// are.
using RequestSink = std::function<Status(TraceRequest request, uint32_t block_tokens)>;

// That an id follows another one than before.
Status DisplacedId(uint64_t id);

// kInvalid when of `all` requests none is left to be counted after so many.
Status CheckWarmUp(uint64_t all, uint64_t requests);

// In the Mooncake project's schema, one JSON object a line: timestamp (ms), input_length, output_length, hash_ids.
std::string FormatTrace(const Trace& trace);

}  // namespace cachalot::sim
