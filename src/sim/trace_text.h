// The text of a trace's requests as words: a number of 32 bits per token, equal for equal tokens. Nobody can tell from
// them what was said.
// Threads:   pure functions; a TextKeeper belongs to one thread.
// Ownership: a TextKeeper borrows the trace that it fills.
// Invariant: equal text has equal words, and equal blocks.
// Cost:      linear in the tokens. The pool holds text that several requests begin with once.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "sim/trace.h"

namespace cachalot::sim {

// Of the request's prompt, then of as much of its answer as is known. Where only blocks are known, words stand for
// them.
std::vector<uint32_t> WordsOf(const Trace& trace, const TraceRequest& request);

// A word as a token of a vocabulary.
constexpr TokenId TokenOf(uint32_t word, uint32_t vocabulary) {
  return static_cast<TokenId>((uint64_t{word} * vocabulary) >> 32);
}

// Puts text into a trace, and gives equal blocks equal ids: 0, 1, 2, ...
class TextKeeper {
 public:
  // The trace's block_tokens must be set.
  explicit TextKeeper(Trace& trace) : trace_(trace) {}

  // Sets the request's blocks, from the words of its prompt.
  void NameBlocks(std::span<const uint32_t> prompt, TraceRequest* request);
  // Sets its text. Words of prompt and answer.
  void KeepText(std::span<const uint32_t> words, TraceRequest* request);

 private:
  uint64_t Pooled(std::span<const uint32_t> chunk);

  Trace& trace_;
  std::unordered_map<uint64_t, uint64_t> chunks_;  // place in the pool, by hash of the words
  std::unordered_map<uint64_t, uint64_t> ids_;     // of blocks, by hash of theirs and all words before
};

}  // namespace cachalot::sim
