// `cachalot replay paper`: figures of the literature beside ours.
// Threads:   main thread.
// Ownership: none.
// Invariant: fails, after printing, when something that is claimed does not hold.
// Cost:      that of sim/papers.
#pragma once

#include "base/status.h"
#include "cli/commands.h"
#include "sim/papers/paper.h"

namespace cachalot::cli {

std::string PaperAsText(const sim::Paper& paper, const sim::PaperResult& result);
std::string PaperAsJson(const sim::Paper& paper, const sim::PaperResult& result);

// The arguments after "paper".
Status ReplayPaperCommand(const Arguments& arguments);

}  // namespace cachalot::cli
