// FindOverlap says of each request of a trace which part of its prompt earlier requests had too: at the front, where a
// prefix cache finds it, and elsewhere, where none does.
// Threads:   a pure function, and plain data.
// Ownership: an Overlap owns its words.
// Invariant: cut <= match.length <= the prompt's; a run stood first in an earlier request.
// Cost:      sorting the requests' texts; 4 bytes per token where text is known, up to kMostWords tokens. Beyond that
//            it looks at blocks only.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/prefix_match.h"
#include "sim/repeated_text.h"
#include "sim/trace.h"

namespace cachalot::sim {

// What is the matter behind the place where requests stop being alike.
enum class Change : uint8_t {
  kNew,     // the rest is new, or nobody can know: chained text is comparable only as far as all before it is alike
  kEdited,  // a few tokens differ, then comes what an earlier request had in that place too
  kMoved,   // what earlier requests had stands elsewhere: in another order, or behind text that is new
};

struct RequestOverlap {
  PrefixMatch match;     // tokens of the prompt that an earlier request begins with, prompt or answer
  bool goes_on = false;  // the whole prompt of that one stands at its beginning
  Change change = Change::kNew;
  uint64_t cut = 0;   // where requests of its kind stop being alike: match.length, or before
  uint32_t kind = 0;  // equal for equal text up to the cut
  // Behind the match, or of kMoved behind the cut: what earlier requests had elsewhere.
  std::vector<RepeatedRun> runs;

  // Of the runs, what lies behind the match.
  uint64_t lost_tokens() const;
  // Where the first run begins; the cut without one.
  uint64_t alike_again() const { return runs.empty() ? cut : runs.front().begin; }
};

struct Overlap {
  bool text_known = false;                   // else there are no runs
  uint32_t position_tokens = 1;              // places are multiples of this: 1, or a block of the trace
  std::vector<std::vector<uint32_t>> words;  // prompt and answer of each request; empty where only blocks are known
  std::vector<RequestOverlap> requests;      // as in the trace
  uint32_t kinds = 0;
};

// Tokens that may differ, and by which places may shift, for text to count as edited.
inline constexpr uint64_t kMostEdited = 64;
inline constexpr uint64_t kMostWords = uint64_t{1} << 28;

Overlap FindOverlap(const Trace& trace);

}  // namespace cachalot::sim
