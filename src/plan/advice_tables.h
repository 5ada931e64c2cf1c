// The tables of an advice: what the traffic is like, what holds the server back, what helps.
// Threads:   pure functions.
// Ownership: none.
// Invariant: a table that has nothing to say is left out.
// Cost:      linear in the requests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kv/geometry.h"
#include "plan/advice_report.h"

namespace cachalot::plan {

// Lengths, prefixes, divergences, who comes back.
std::vector<Table> TrafficTables(const AdvisedTraffic& traffic, const Diagnosis& diagnosis);
// Capacity, cost, constraints, levers.
std::vector<Table> AdviceTables(const AdvisedTraffic& traffic, const Present& present, const Diagnosis& diagnosis);

// "1.2 s -> 0.4 s per request, ..."
std::string GainText(const Outcome& before, const Outcome& after);
kv::KvGeometry GeometryOf(const Setting& setting);
// Tokens that the pool holds, of sequences as long as the context.
uint64_t TokensOf(const Setting& setting);
// Tokens of requests that generate, over time.
LevelSpread TokensHeld(const Outcome& outcome);
// Of what admission sets aside for them; nothing where it promises no more than they hold.
std::optional<LevelSpread> TokensPromised(const Setting& setting, const Outcome& outcome);

}  // namespace cachalot::plan
