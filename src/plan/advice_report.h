// BuildAdviceReport says a diagnosis as people and programs read it.
// Threads:   pure functions.
// Ownership: none.
// Invariant: as that of a Report; what cannot be known of a trace is said to be unknown, not 0.
// Cost:      linear in the requests.
#pragma once

#include <cstdint>
#include <string>

#include "plan/advice.h"
#include "plan/report.h"
#include "sim/profile.h"

namespace cachalot::plan {

struct AdvisedTraffic {
  std::string source;   // of the trace
  std::string skipped;  // of its lines; empty: none
  sim::TrafficProfile profile;
  uint64_t simulated_requests = 0;  // from the beginning of the trace
  double ttft_target = 0;           // seconds; 0: none
};

Report BuildAdviceReport(const AdvisedTraffic& traffic, const Present& present, const Diagnosis& diagnosis);

}  // namespace cachalot::plan
