// Trace is a list of requests as the Mooncake project publishes them: when, how long, and which blocks.
// Threads:   plain data and pure functions.
// Ownership: none.
// Invariant: of a parsed or generated trace: arrivals do not go back; a request has one id per block of its input, the
//            last one perhaps unfilled; an id stands for its block and all before it, so it always follows the same id.
// Cost:      linear in the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace cachalot::sim {

struct TraceRequest {
  Nanos arrival{0};
  uint64_t input_tokens = 0;
  uint64_t output_tokens = 0;
  std::vector<uint64_t> blocks;
};

struct Trace {
  uint32_t block_tokens = 512;
  std::vector<TraceRequest> requests;
};

// What a request of a trace may count, of input and of output.
struct TraceLimits {
  uint64_t least_tokens = 0;
  uint64_t most_tokens = uint64_t{1} << 40;
};

// One JSON object a line: timestamp (ms), input_length, output_length, hash_ids; other keys are ignored, and so are
// empty lines. kInvalid with the line number for anything that breaks the invariant or the limits.
Result<Trace> ParseTrace(std::string_view text, uint32_t block_tokens, const TraceLimits& limits = {});

// The same text back.
std::string FormatTrace(const Trace& trace);

}  // namespace cachalot::sim
