// MadeTrace puts together traces of which everything is known: pieces of text by name and place.
// Threads:   one.
// Ownership: owns its trace.
// Invariant: equal pieces are equal text.
// Cost:      linear in the tokens.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/trace.h"
#include "sim/trace_text.h"

namespace cachalot::sim::testing {

// Tokens [begin, begin + tokens) of the text of that name.
inline TextRun TextOf(uint64_t name, uint64_t begin, uint64_t tokens) {
  return {.source = name, .begin = begin, .tokens = tokens};
}

struct Ask {
  std::vector<TextRun> prompt;
  uint64_t output = 1;
  uint64_t session = 0;
  uint64_t tenant = 0;
};

class MadeTrace {
 public:
  explicit MadeTrace(double seconds_apart = 1) : apart_(static_cast<Nanos::rep>(seconds_apart * 1e9)) {
    trace_.block_tokens = 16;
  }
  void Add(const Ask& ask) {
    TraceRequest request{.arrival = now_, .output_tokens = ask.output, .session = ask.session, .tenant = ask.tenant};
    for (const TextRun& run : ask.prompt) request.input_tokens += run.tokens;
    request.text = ask.prompt;
    const std::vector<uint32_t> words = WordsOf(trace_, request);
    keeper_.NameBlocks(words, &request);
    trace_.requests.push_back(std::move(request));
    now_ += apart_;
  }
  Trace Take() && { return std::move(trace_); }

 private:
  const Nanos apart_;
  Nanos now_{0};
  Trace trace_;
  TextKeeper keeper_{trace_};
};

}  // namespace cachalot::sim::testing
