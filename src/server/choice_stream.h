// ChoiceStream turns the tokens of one choice into text that may be shown, cut at a stop string, and says which tokens
// that text came from.
// Threads:   one choice, I/O thread.
// Ownership: borrows the tokenizer, shares the stop strings.
// Invariant: shown text is valid UTF-8 and contains no stop string; a token is shown once its text is, and never when
//            it begins after a stop string began.
// Cost:      linear in the bytes of the tokens.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/sampling.h"
#include "text/stop_matcher.h"
#include "text/stream_decoder.h"

namespace cachalot::server {

struct ShownToken {
  SampledToken token;
  uint64_t offset = 0;  // of its text, in code points from the beginning of the answer
};

class ChoiceStream {
 public:
  // `offset` counts the code points in front of the choice's own text (those of an echoed prompt).
  ChoiceStream(const text::Tokenizer& tokenizer, std::shared_ptr<const text::StopSet> stops, uint64_t offset);

  void Push(const SampledToken& token);
  // No token follows: what was held back is shown too, unless a stop string was found.
  void Finish();

  // What became fit to be shown since the last call.
  std::string TakeText();
  std::vector<ShownToken> TakeTokens();

 private:
  struct HeldToken {
    ShownToken shown;
    uint64_t begin_bytes;  // of its text
  };
  void Show(std::string_view piece);

  text::StreamDecoder decoder_;
  text::StopMatcher matcher_;
  bool stopped_ = false;
  uint64_t decoded_bytes_ = 0;
  uint64_t shown_bytes_ = 0;
  uint64_t code_points_;  // in front of what is decoded next
  std::deque<HeldToken> held_;
  std::string text_;
  std::vector<ShownToken> tokens_;
};

// Of valid UTF-8.
uint64_t CountCodePoints(std::string_view text);

}  // namespace cachalot::server
