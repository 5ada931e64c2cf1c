#include "plan/price.h"

namespace cachalot::plan {
namespace {

constexpr double kMillion = 1e6;
constexpr double kSecondsPerHour = 3600;
constexpr double kBytesPerGiB = 1024.0 * 1024 * 1024;

}  // namespace

double MillionComputed(const Prices& prices, uint32_t devices, double seconds_per_token) {
  return kMillion * seconds_per_token / kSecondsPerHour * prices.device_hour * devices;
}

double MillionLoaded(const Prices& prices, uint32_t devices, double seconds_per_token, uint64_t token_bytes) {
  const double kept =
      static_cast<double>(token_bytes) / kBytesPerGiB * prices.storage_gib_month / kHoursPerMonth * prices.keep_hours;
  return MillionComputed(prices, devices, seconds_per_token) + kMillion * kept;
}

}  // namespace cachalot::plan
