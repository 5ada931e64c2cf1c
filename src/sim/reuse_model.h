// ReuseModel says what requests have in common of which only lengths are known.
// Threads:   plain data and pure functions.
// Ownership: none.
// Invariant: the same trace, model and seed give the same text. Lengths and times stay.
// Cost:      linear in the tokens.
//
// none:           nothing.
// system:TOKENS:  all prompts begin with the same so many tokens.
// chat:SHARE:     such a share of the requests go on with a conversation of before: their prompts begin with its prompt
//                 and answer. Which one is drawn from the latest that are short enough; where none is, a new one
//                 begins.
// session:        requests of one session do, where the later prompt is long enough.
#pragma once

#include <cstdint>
#include <string_view>

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

// Gives all requests of the trace their text and blocks. kInvalid when the model needs sessions and there are none.
Status ApplyReuse(const ReuseModel& model, uint64_t seed, Trace* trace);

}  // namespace cachalot::sim
