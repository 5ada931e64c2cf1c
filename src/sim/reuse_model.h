// ReuseModel says what requests have in common of which only lengths are known.
// Threads:   plain data and pure functions; a ReuseAuthor belongs to one thread.
// Ownership: none.
// Invariant: the same requests, model and seed give the same text. Lengths and times stay.
// Cost:      linear in the tokens; memory for the last request of each session, or of so many conversations.
//
// none:           nothing.
// system:TOKENS:  all prompts begin with the same so many tokens.
// chat:SHARE:     such a share of the requests go on with a conversation of before: their prompts begin with its prompt
//                 and answer. Which one is drawn from the latest that are short enough; where none is, a new one
//                 begins.
// session:        requests of one session do, where the later prompt is long enough.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "sim/trace.h"

namespace cachalot::sim {

struct ReuseModel {
  enum class Kind : uint8_t { kNone, kSystem, kChat, kSession };
  Kind kind = Kind::kNone;
  uint64_t system_tokens = 0;
  double chat_share = 0;
};

// kInvalid, with what is understood, for any other text; the empty one too.
Result<ReuseModel> ParseReuseModel(std::string_view text);

class ReuseAuthor {
 public:
  ReuseAuthor(const ReuseModel& model, uint64_t seed) : model_(model), random_(seed) {}

  // Gives the next request of a trace its text.
  void Write(TraceRequest* request);
  // After the last: kInvalid when the model needs sessions and there were none.
  Status Finish() const;

 private:
  // What was said and answered.
  struct Said {
    std::vector<TextRun> text;
    uint64_t tokens = 0;
  };
  Said EarlierOf(const TraceRequest& request);
  void Remember(const TraceRequest& request);

  const ReuseModel model_;
  SplitMix64 random_;
  uint64_t written_ = 0;
  std::deque<Said> open_;  // the last request of each conversation, oldest first
  std::unordered_map<uint64_t, Said> last_of_session_;
};

}  // namespace cachalot::sim
