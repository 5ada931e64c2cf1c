// A trace of requests in Mooncake's schema: one JSON object a line, with timestamp (ms), input_length, output_length
// (tokens) and hash_ids (one for each block of 512 prompt tokens, the last of which may be partial).
// Threads:   plain values.
// Ownership: owns its rows.
// Invariant: rows are in the order of their times; each has an id for every block of its prompt.
// Cost:      some microseconds per line.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace cachalot::load {

inline constexpr uint32_t kTraceBlockTokens = 512;

struct TraceRow {
  Nanos time{0};
  uint32_t prompt_tokens = 0;
  uint32_t output_tokens = 0;
  std::vector<uint64_t> block_ids;
};

// kInvalid, with the line's number, for what does not follow the schema.
Result<std::vector<TraceRow>> ParseTrace(std::string_view text);

}  // namespace cachalot::load
