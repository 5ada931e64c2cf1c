// TextStopCondition ends a sequence when the text of its tokens contains one of its stop strings.
// Threads:   one sequence, one thread.
// Ownership: borrows the tokenizer; shares the stop strings.
// Invariant: sees the very text that StreamDecoder gives for the same tokens, special tokens left out.
// Cost:      linear in the bytes of a token.
#pragma once

#include <memory>

#include "base/stop_condition.h"
#include "text/stop_matcher.h"
#include "text/stream_decoder.h"

namespace cachalot::text {

class TextStopCondition final : public StopCondition {
 public:
  TextStopCondition(const Tokenizer& tokenizer, std::shared_ptr<const StopSet> stops)
      : decoder_(tokenizer, /*with_special=*/false, DecodeFrom::kContinuation), matcher_(std::move(stops)) {}

  bool Push(TokenId token) override { return matcher_.Push(decoder_.Push(token)).matched.has_value(); }

 private:
  StreamDecoder decoder_;
  StopMatcher matcher_;
};

}  // namespace cachalot::text
