// RunLoad makes the load that the options describe and sums up what came of it.
// Threads:   runs on the caller's thread alone and returns when it is done.
// Ownership: borrows its arguments while it runs.
// Invariant: it ends: every request has its deadline. What is sent when depends on options, clock and the server's
//            answers only.
// Cost:      one thread; some microseconds per event that the server sends.
#pragma once

#include "base/clock.h"
#include "base/function_ref.h"
#include "base/status.h"
#include "load/load_options.h"
#include "load/report.h"

namespace cachalot::load {

// Asks the server for its models (when none is named) and, with two short requests, for the tokens per word; then runs.
// `go_on` is told from time to time which share of the run is over; when it returns false the run ends and what is
// under way counts as aborted. kInvalid for options that make no sense, kUnavailable when the server does not answer.
Result<LoadReport> RunLoad(const LoadOptions& options, const Clock& clock, FunctionRef<bool(double share)> go_on);

}  // namespace cachalot::load
