// FragmentEncoder turns a stretch of plain text, between special tokens, into token ids.
// Threads:   immutable; any thread may call Encode at once.
// Ownership: owns its tables; borrows the Vocab it was made from.
// Invariant: never yields control, unknown-by-spelling or other tokens that plain text must not become.
// Cost:      O(n log n) in the text.
#pragma once

#include <string_view>
#include <vector>

#include "base/ids.h"

namespace cachalot::text {

class FragmentEncoder {
 public:
  virtual ~FragmentEncoder() = default;
  // Appends to `out`. `at_start`: the fragment is the first thing in the text, or follows a special token.
  virtual void Encode(std::string_view fragment, bool at_start, std::vector<TokenId>* out) const = 0;
};

}  // namespace cachalot::text
