#include "sched/write_behind.h"

#include <algorithm>
#include <cmath>

namespace cachalot::sched {
namespace {

constexpr Nanos kLeastLife = std::chrono::seconds(10);  // of what is worth writing

}  // namespace

std::optional<Nanos> WriteUntil(const LifeView& view) {
  const auto life = [&](Nanos until) { return until == Nanos::max() ? until : std::max(until - view.now, Nanos(0)); };
  if (life(view.wanted_until) < kLeastLife) return std::nullopt;
  const bool lasts = view.stored_until == Nanos::max() ||
                     (view.wanted_until != Nanos::max() && life(view.stored_until) >= life(view.wanted_until) / 2);
  if (view.stored_whole && lasts) return std::nullopt;
  return std::max(view.wanted_until, view.stored_until);
}

WriteBudget::WriteBudget(std::optional<uint64_t> bytes_per_second, uint64_t burst_bytes)
    : bytes_per_second_(bytes_per_second),
      burst_bytes_(static_cast<double>(burst_bytes)),
      balance_bytes_(burst_bytes_) {}

bool WriteBudget::Take(uint64_t bytes, Nanos now) {
  if (!bytes_per_second_) return true;
  const double elapsed = std::max(ToSeconds(now - now_), 0.0);
  now_ = std::max(now_, now);
  balance_bytes_ = std::min(balance_bytes_ + elapsed * static_cast<double>(*bytes_per_second_), burst_bytes_);
  if (*bytes_per_second_ == 0 || balance_bytes_ <= 0) return false;
  balance_bytes_ -= static_cast<double>(bytes);
  return true;
}

uint64_t BlocksToClean(const CleanView& view, double share) {
  const double wanted = std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(view.evictable));
  const uint64_t target = std::min(static_cast<uint64_t>(wanted), view.evictable);
  const uint64_t have = view.clean + view.copying;
  return target > have ? target - have : 0;
}

DownCosts ChooseWayDown(const DownView& view) {
  const ReuseView& reuse = view.reuse;
  DownCosts costs{.keep = view.keep, .drop = reuse.probability * reuse.recompute_seconds};
  if (view.lower_exists) {
    // Whoever finds it down there still computes it where that is faster.
    const double again = std::min(reuse.load_seconds, reuse.recompute_seconds);
    costs.hand_down = reuse.write_seconds * view.write_price + reuse.probability * again;
  }
  double least = costs.keep;
  if (costs.drop < least) {
    costs.least = WayDown::kDrop;
    least = costs.drop;
  }
  if (costs.hand_down && *costs.hand_down < least) costs.least = WayDown::kHandDown;
  return costs;
}

}  // namespace cachalot::sched
