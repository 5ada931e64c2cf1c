// AnswerReader understands one streamed answer of the OpenAI API and notes when its pieces arrive.
// Threads:   one thread.
// Ownership: borrows the clock.
// Invariant: times never decrease; `gaps` lie between the pieces that bear text, `first_piece` is the first of them (or
//            the end of an answer without text).
// Cost:      some microseconds per event.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "load/response_reader.h"
#include "load/sse_reader.h"

namespace cachalot::load {

// As the server counted them.
struct TokenUsage {
  uint64_t prompt_tokens = 0;
  uint64_t output_tokens = 0;
  std::optional<uint64_t> cached_tokens;  // of the prompt; absent when the server does not say
};

struct Answer {
  int status = 0;  // of HTTP; 0: nothing arrived
  std::string text;
  uint64_t pieces = 0;  // events that bear text
  std::optional<Nanos> first_piece;
  std::vector<Nanos> gaps;
  std::optional<TokenUsage> usage;
  bool finished = false;      // the server said that the answer is whole
  std::string error_message;  // what the server said was wrong; may be empty when `failed`
  bool failed = false;        // an error status, or an error inside the stream
};

class AnswerReader final : public ResponseSink {
 public:
  explicit AnswerReader(const Clock& clock) : clock_(clock) {}

  void OnHead(const ResponseHead& head) override;
  // kInvalid for what is not a stream of JSON events; an error of the server is no failure of the reader.
  Status OnBody(std::string_view bytes) override;
  // After the last byte of the response.
  void OnEnd();

  const Answer& answer() const { return answer_; }
  Answer Take() { return std::move(answer_); }

 private:
  Status OnEvent(std::string_view data);
  void OnChoice(const Json& choice);
  void OnUsage(const Json& usage);
  void OnPiece(std::string_view text);
  void OnError(const Json& error);

  const Clock& clock_;
  Answer answer_;
  SseReader events_;
  bool is_stream_ = false;
  Nanos last_piece_{0};
  std::string error_body_;
};

}  // namespace cachalot::load
