// Price: what a million tokens cost, computed or found in a tier.
// Threads:   pure functions.
// Ownership: none.
// Invariant: a price of 0 per hour gives 0.
// Cost:      none.
#pragma once

#include <cstdint>

namespace cachalot::plan {

struct Prices {
  double device_hour = 0;        // of one device
  double storage_gib_month = 0;  // of the tier that KV is kept in
  double keep_hours = 1;         // that a prefix is kept before it is used again
};

inline constexpr double kHoursPerMonth = 730;

// Devices that work for `seconds_per_token` on each token.
double MillionComputed(const Prices& prices, uint32_t devices, double seconds_per_token);
// Devices that wait for a load of `seconds_per_token`, and `token_bytes` that were kept since.
double MillionLoaded(const Prices& prices, uint32_t devices, double seconds_per_token, uint64_t token_bytes);

}  // namespace cachalot::plan
