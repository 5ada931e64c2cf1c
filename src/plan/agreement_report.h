// How a server and the simulation of its record agree, as people and programs read it.
// Threads:   pure functions.
// Ownership: none.
// Invariant: as that of a Report.
// Cost:      linear in the rows.
#pragma once

#include <string>

#include "plan/report.h"
#include "sim/agreement.h"

namespace cachalot::plan {

// How many figures agree, and which do not.
std::string AgreementSentence(const sim::Agreement& agreement);
// With notes on what may make them differ.
Table AgreementTable(const sim::Agreement& agreement);

}  // namespace cachalot::plan
