#include "base/clock.h"

#include <algorithm>
#include <thread>

#include "base/check.h"

namespace cachalot {

std::chrono::steady_clock::time_point DeadlineIn(Nanos wait) {
  constexpr Nanos kCentury = std::chrono::hours(24 * 36525);
  return std::chrono::steady_clock::now() + std::min(wait, kCentury);
}

Nanos SteadyClock::Now() const {
  return std::chrono::duration_cast<Nanos>(std::chrono::steady_clock::now().time_since_epoch());
}

int64_t SteadyClock::UnixSeconds() const {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since_epoch).count();
}

void SteadyClock::SleepUntil(Nanos moment) {
  for (Nanos now = Now(); now < moment; now = Now()) std::this_thread::sleep_until(DeadlineIn(moment - now));
}

void ManualClock::SleepUntil(Nanos moment) {
  if (const Nanos now = Now(); now < moment) Advance(moment - now);
}

void ManualClock::Advance(Nanos d) {
  CACHALOT_CHECK(d >= Nanos(0));
  now_.fetch_add(d.count(), std::memory_order_acq_rel);
}

}  // namespace cachalot
