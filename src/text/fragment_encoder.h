// FragmentEncoder turns a stretch of plain text, between special tokens, into token ids.
// Threads:   immutable; any thread may call Encode at once, each with its own run.
// Ownership: owns its tables; borrows the Vocab it was made from.
// Invariant: plain text never becomes a control token.
// Cost:      O(n log n) in the text.
#pragma once

#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/pair_merger.h"
#include "text/recent_words.h"

namespace cachalot::text {

// What one call of Tokenizer::Encode carries from fragment to fragment.
struct EncodeRun {
  explicit EncodeRun(size_t text_bytes) : recent(text_bytes) {}
  std::vector<TokenId> ids;  // the result so far
  MergeScratch scratch;
  RecentWords recent;
};

class FragmentEncoder {
 public:
  virtual ~FragmentEncoder() = default;
  // Appends to run->ids. `at_start`: the fragment is the first thing in the text, or follows a special token.
  virtual void Encode(std::string_view fragment, bool at_start, EncodeRun* run) const = 0;
};

}  // namespace cachalot::text
