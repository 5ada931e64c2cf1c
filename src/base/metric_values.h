// The values that labels of metrics take, and the bounds of their histograms.
// Threads:   constants.
// Ownership: none.
// Invariant: values are distinct, bounds ascend.
// Cost:      none.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "base/hit_account.h"

namespace cachalot {

namespace metric_values {
inline constexpr std::array<std::string_view, 5> kOutcomes = {"stop", "length", "cancelled", "rejected", "error"};
inline constexpr std::array<std::string_view, 3> kPinOutcomes = {"whole", "shortened", "refused"};
inline constexpr std::array<std::string_view, 10> kHttpStatuses = {"200", "400", "404", "405", "408",
                                                                   "413", "429", "500", "503", "other"};
// Without "salt", which the last one stands for: what other tenants have is not to be read here.
inline constexpr auto kTokenClasses = [] {
  std::array<std::string_view, kTokenClassNames.size() - 1> names;
  std::ranges::remove_copy(kTokenClassNames, names.begin(), kTokenClassNames[static_cast<size_t>(TokenClass::kSalt)]);
  return names;
}();
inline constexpr double kSeconds[] = {.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 600};
inline constexpr std::array<std::string_view, 4> kTierLanes = {"host_up", "host_down", "disk_up", "disk_down"};
inline constexpr std::array<std::string_view, 2> kPressureLevels = {"some", "full"};
inline constexpr std::array<std::string_view, 3> kSessionStates = {"hot", "warm", "cold"};
inline constexpr std::array<std::string_view, 2> kSessionEnds = {"ended", "forgotten"};
inline constexpr std::array<std::string_view, 2> kSessionMoves = {"suspended", "resumed"};
inline constexpr std::array<std::string_view, 2> kSessionParts = {"history", "extended"};
inline constexpr std::array<std::string_view, 4> kHostParts = {"cached", "moving", "free", "overhead"};
inline constexpr std::array<std::string_view, 4> kEngineUses = {"compute", "other", "transfers", "idle"};
inline constexpr double kRatios[] = {.25, .5, .75, .9, .95, 1, 1.05, 1.1, 1.25, 1.5, 2, 4, 10};
inline constexpr double kTokens[] = {1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576};
}  // namespace metric_values

}  // namespace cachalot
