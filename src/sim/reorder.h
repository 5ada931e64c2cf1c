// Reordered is a trace as it would be if text that is alike stood at the front of prompts: to see what that is worth.
// Threads:   a pure function.
// Ownership: none.
// Invariant: every request keeps its words, arrival and lengths; only the order of words in prompts changes.
// Cost:      linear in the tokens.
#pragma once

#include "sim/overlap.h"
#include "sim/trace.h"

namespace cachalot::sim {

// What an earlier request had elsewhere comes right after what is alike anyway, in the order in which it was first
// seen; then what is left, as it stood. A request that goes on from a changed one is changed in the same way. Requires
// overlap.text_known.
Trace Reordered(const Trace& trace, const Overlap& overlap);

}  // namespace cachalot::sim
