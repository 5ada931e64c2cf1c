// The text of a trace's requests as words: a number of 32 bits per token, equal for equal tokens. Nobody can tell from
// them what was said.
// Threads:   pure functions; a TextKeeper belongs to one thread.
// Ownership: a TextKeeper borrows the trace that it fills.
// Invariant: equal text has equal words, and equal blocks.
// Cost:      linear in the tokens. The pool holds text that several requests begin with once; memory for it and for
// every
//            block, or for neither (Kept).
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

enum class Kept : uint8_t {
  kText,     // words in the trace's pool; blocks are 0, 1, 2, ...
  kNothing,  // a block's id is a hash of its words and of all before
};

// Puts text into a trace, and gives equal blocks equal ids.
class TextKeeper {
 public:
  // The trace's block_tokens must be set.
  explicit TextKeeper(Trace& trace, Kept kept = Kept::kText) : trace_(trace), kept_(kept) {}

  // Sets the request's blocks, from the words of its prompt.
  void NameBlocks(std::span<const uint32_t> prompt, TraceRequest* request);
  // Sets its text, where it is kept. Words of prompt and answer.
  void KeepText(std::span<const uint32_t> words, TraceRequest* request);

 private:
  uint64_t Pooled(std::span<const uint32_t> chunk);

  Trace& trace_;
  const Kept kept_;
  std::unordered_map<uint64_t, uint64_t> chunks_;  // place in the pool, by hash of the words
  std::unordered_map<uint64_t, uint64_t> ids_;     // of blocks, by hash of theirs and all words before
};

}  // namespace cachalot::sim
