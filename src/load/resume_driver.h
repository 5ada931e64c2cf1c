// RunResume builds conversations, lets them lie in several ways, comes back with one more turn each, and measures how
// soon its first token comes.
// Threads:   runs on the caller's thread alone and returns when it is done.
// Ownership: borrows its arguments while it runs.
// Invariant: one request at a time; every request has its deadline. The first that fails ends the run.
// Cost:      that of the server.
#pragma once

#include "base/clock.h"
#include "base/function_ref.h"
#include "base/status.h"
#include "load/resume_options.h"
#include "load/resume_report.h"

namespace cachalot::load {

struct ResumeHooks {
  FunctionRef<bool(double share)> go_on;  // told from time to time which share of the run is over; false ends it
  FunctionRef<Status()> restart;          // the server ends and begins anew; need not wait until it answers
  FunctionRef<Status()> before_return;    // of each conversation
};

// kInvalid for options that make no sense, kUnavailable when the server does not answer.
Result<ResumeReport> RunResume(const ResumeOptions& options, const Clock& clock, const ResumeHooks& hooks);

}  // namespace cachalot::load
