// The subcommands: each reads its flags, does its work and gives the process's exit status.
// Threads:   main thread.
// Ownership: none.
// Invariant: results go to standard output, all else to standard error.
// Cost:      that of the work.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace cachalot::cli {

using Arguments = std::vector<std::string>;

// Exit statuses: 0 done, 1 the work failed, 2 wrong usage (main maps kInvalid to 2).
Status ServeCommand(const Arguments& arguments);
Status RunCommand(const Arguments& arguments);
Status FetchCommand(const Arguments& arguments);
Status InspectCommand(const Arguments& arguments);
Status TokenizeCommand(const Arguments& arguments);
Status PerplexityCommand(const Arguments& arguments);
Status CalibrateCommand(const Arguments& arguments);
Status BenchCommand(const Arguments& arguments);
Status PlanCommand(const Arguments& arguments);
Status ReplayCommand(const Arguments& arguments);
Status AdviseCommand(const Arguments& arguments);
Status BenchServeCommand(const Arguments& arguments);
Status BenchResumeCommand(const Arguments& arguments);

}  // namespace cachalot::cli
