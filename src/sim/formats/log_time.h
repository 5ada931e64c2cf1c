// LogTimes reads when a logged request came.
// Threads:   one.
// Ownership: none.
// Invariant: all times of a log have one unit: that which was asked for, or which the first number is in if it is a
//            moment since 1970. Numbers that could be anything are refused.
// Cost:      constant.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/json.h"
#include "base/status.h"

namespace cachalot::sim {

class LogTimes {
 public:
  // `unit` is empty or one that IsTimeUnit.
  explicit LogTimes(std::string_view unit);

  // Of a line, the parts of it that say what was asked, and those that say what was answered.
  Result<Nanos> ArrivalOf(const Json& line, std::span<const Json* const> asked, std::span<const Json* const> answered);

 private:
  Result<Nanos> MomentOf(std::string_view name, const Json& value);

  std::optional<double> nanos_per_unit_;
};

// s, ms, us or ns.
bool IsTimeUnit(std::string_view unit);

}  // namespace cachalot::sim
