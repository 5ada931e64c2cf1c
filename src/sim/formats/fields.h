// What the fields of a trace's lines have in common: counts of tokens, moments, members of objects, columns.
// Threads:   pure functions.
// Ownership: none; what is returned lies in what was passed.
// Invariant: an error names the field, and says what was expected and what was there.
// Cost:      linear in the field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"
#include "sim/read_trace.h"

namespace cachalot::sim {

// kInvalid unless the line is an object.
Result<Json> ParseObject(std::string_view line);
// kInvalid when it is missing.
Result<const Json*> Member(const Json& object, std::string_view key);
Result<uint64_t> TokenCount(const Json& value, std::string_view key, const TraceLimits& limits);
// Member() and TokenCount().
Result<uint64_t> TokenMember(const Json& object, std::string_view key, const TraceLimits& limits);
// A number of at least 0 that tells sessions or tenants apart; 0 when it is missing.
Result<uint64_t> OptionalId(const Json& object, std::string_view key);
// From 0 to some thirty years.
Result<Nanos> MillisecondMember(const Json& object, std::string_view key);

// Between commas. Quotes are not understood, and refused.
Result<std::vector<std::string_view>> SplitColumns(std::string_view line);
Result<uint64_t> TokenColumn(std::string_view text, std::string_view name, const TraceLimits& limits);
Result<Nanos> SecondsColumn(std::string_view text, std::string_view name);

// "2023-11-16 18:17:03.9799600", with T or a space between, with or without a fraction, Z or an offset such as +01:00;
// without one it is taken for UTC. Since 1970.
Result<Nanos> ParseDateTime(std::string_view text);

}  // namespace cachalot::sim
