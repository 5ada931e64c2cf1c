// BuildLiveReport says what two readings of a server's metrics show, and what they cannot.
// Threads:   pure functions.
// Ownership: none.
// Invariant: as that of a Report.
// Cost:      linear in the metrics.
#pragma once

#include <string>

#include "plan/live_load.h"
#include "plan/report.h"

namespace cachalot::plan {

// What the server is called, in titles and in commands.
struct LiveServerName {
  std::string address;  // http://HOST:PORT
  std::string model;    // empty: it does not say
};

Report BuildLiveReport(const LiveServerName& server, const LiveWindow& window, const LiveFinding& finding);

}  // namespace cachalot::plan
