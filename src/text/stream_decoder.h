// StreamDecoder turns one sequence's tokens into text as they arrive, and never emits half a UTF-8 character.
// Threads:   one sequence, one thread.
// Ownership: borrows the tokenizer.
// Invariant: the concatenation of all Push results and Finish is the decoded text with invalid bytes as U+FFFD;
//            every piece is valid UTF-8.
// Cost:      linear in the bytes of the token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace cachalot::text {

class Tokenizer;

enum class DecodeFrom : uint8_t {
  kStart,         // the tokens are a whole text: the space that SentencePiece puts before it is dropped
  kContinuation,  // the tokens continue a prompt: a space before the first is the model's own
};

class StreamDecoder {
 public:
  // `with_special`: control tokens are written out as they are spelled.
  StreamDecoder(const Tokenizer& tokenizer, bool with_special, DecodeFrom from = DecodeFrom::kStart);

  // The text that became complete with this token; may be empty.
  std::string Push(TokenId id);
  // What is left when the sequence ends: an unfinished character becomes U+FFFD.
  std::string Finish();

 private:
  const Tokenizer& tokenizer_;
  bool with_special_;
  bool at_start_;        // a leading space is still to be dropped
  std::string pending_;  // at most 3 bytes: the beginning of a character
};

}  // namespace cachalot::text
