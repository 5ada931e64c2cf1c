// Which settings of `cachalot replay` count together: of the trace, the cache alone, the engine, an input log.
// Threads:   pure functions.
// Ownership: none.
// Invariant: a setting that the replay would not look at is refused.
// Cost:      microseconds.
#pragma once

#include "base/status.h"
#include "cli/option_rules.h"

namespace cachalot::cli {

// kInvalid, naming the setting that has no effect beside the others.
Status CheckReplayOptions(const GivenOptions& given);

}  // namespace cachalot::cli
