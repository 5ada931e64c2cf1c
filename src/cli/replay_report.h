// What a replay gave as a report with plots, for --html.
// Threads:   pure functions.
// Ownership: none.
// Invariant: figures keep the names under which the command prints them; every number has a unit.
// Cost:      linear in the figures and samples.
#pragma once

#include <string>

#include "base/json.h"
#include "cli/replay_sweep.h"
#include "plan/report.h"

namespace cachalot::cli {

// One replay.
plan::Report ReplayReport(const std::string& title, const Replayed& replayed);
// One row per capacity: hit rates of lru and of the optimum.
plan::Report CurveReport(const std::string& title, const Json::Array& rows);
// One row per combination of settings. Where numbers were swept, what came of the first of them is drawn.
plan::Report SweepReport(const std::string& title, const Json::Array& rows);

}  // namespace cachalot::cli
