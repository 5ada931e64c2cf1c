// What a report says, by subject.
// Threads:   pure functions.
// Ownership: none.
// Invariant: a table that has nothing to say is left out.
// Cost:      milliseconds: break-even lengths are searched for.
#pragma once

#include <string>
#include <vector>

#include "plan/report.h"

namespace cachalot::plan {

// One sentence each, the first thing that a reader wants to know.
std::vector<std::string> Answers(const Plan& plan);
// Model, KV, formats, weights, memory, what fits, shards, tiers, waste.
std::vector<Table> MemoryTables(const Plan& plan);
// Moving a session, decode ceilings, all-reduce.
std::vector<Table> TimeTables(const Plan& plan);
// Devices for the users, concurrency, prices.
std::vector<Table> LoadTables(const Plan& plan);
Chart MemoryChart(const Plan& plan);

}  // namespace cachalot::plan
