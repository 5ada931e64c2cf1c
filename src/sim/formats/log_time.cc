#include "sim/formats/log_time.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/formats/fields.h"

namespace cachalot::sim {
namespace {

constexpr std::string_view kNames[] = {"timestamp",    "time",       "ts",         "arrival_time", "arrival",
                                       "request_time", "start_time", "created_at", "created",      "received_at"};

struct Unit {
  std::string_view name;
  double nanos;
};
constexpr Unit kUnits[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};

// Moments since 1970 are told from each other by their size: those of 2001 to 2128, in any of the units.
constexpr double kEarliestSeconds = 1e9, kLatestSeconds = 5e9;

const Unit* FindUnit(std::string_view name) {
  const auto found = std::ranges::find(kUnits, name, &Unit::name);
  return found == std::end(kUnits) ? nullptr : &*found;
}

const Unit* UnitOfMoment(double number) {
  const auto fits = [&](const Unit& unit) {
    const double seconds = number * unit.nanos / 1e9;
    return seconds >= kEarliestSeconds && seconds <= kLatestSeconds;
  };
  const auto found = std::ranges::find_if(kUnits, fits);
  return found == std::end(kUnits) ? nullptr : &*found;
}

}  // namespace

bool IsTimeUnit(std::string_view unit) { return FindUnit(unit) != nullptr; }

LogTimes::LogTimes(std::string_view unit) {
  if (const Unit* known = FindUnit(unit); known != nullptr) nanos_per_unit_ = known->nanos;
}

Result<Nanos> LogTimes::ArrivalOf(const Json& line, std::span<const Json* const> asked,
                                  std::span<const Json* const> answered) {
  for (const std::string_view name : kNames) {
    for (const Json* part : asked) {
      const Json* value = part->Find(name);
      if (value == nullptr || value->is_null()) continue;
      CACHALOT_ASSIGN_OR_RETURN(Nanos moment, MomentOf(name, *value));
      // SGLang logs requests when they are finished, and how long they took.
      const Json* event = line.Find("event");
      if (event == nullptr || *event != Json("request.finished")) return moment;
      for (const Json* part_of_answer : answered) {
        const Json* latency = part_of_answer->Find("e2e_latency");
        const std::optional<double> seconds = latency == nullptr ? std::nullopt : latency->AsNumber();
        if (seconds && *seconds >= 0 && *seconds < 1e6) moment -= Nanos(std::llround(*seconds * 1e9));
      }
      return moment;
    }
  }
  return Invalid(fmt::format("no time: expected one of {}", fmt::join(kNames, ", ")));
}

Result<Nanos> LogTimes::MomentOf(std::string_view name, const Json& value) {
  if (value.AsString() != nullptr) {
    const Result<Nanos> moment = ParseDateTime(*value.AsString());
    return moment.ok() ? moment : moment.status().Annotate(fmt::format("\"{}\"", name));
  }
  const std::optional<double> number = value.AsNumber();
  if (!number) return Invalid(fmt::format("\"{}\": expected a time, got {}", name, value.TypeName()));
  if (!nanos_per_unit_) {
    const Unit* unit = UnitOfMoment(*number);
    if (unit == nullptr) {
      return Invalid(fmt::format("\"{}\" is {}, in which unit cannot be told: expected --time-unit s, ms, us or ns",
                                 name, value.Dump()));
    }
    nanos_per_unit_ = unit->nanos;
  }
  const double nanos = *number * *nanos_per_unit_;
  if (!(nanos >= 0 && nanos <= kLatestSeconds * 1e9)) {
    return Invalid(fmt::format("\"{}\": expected a time from 0 to {:g} s, got {} ({:g} s)", name, kLatestSeconds,
                               value.Dump(), nanos / 1e9));
  }
  return Nanos(std::llround(nanos));
}

}  // namespace cachalot::sim
