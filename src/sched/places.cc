#include "sched/places.h"

#include <algorithm>
#include <cmath>

namespace cachalot::sched {
namespace {

constexpr size_t kMostKnown = 4096;
constexpr Nanos kKnownFor = std::chrono::minutes(10);
constexpr double kNewest = 1.0 / 16;
constexpr double kNewestReturn = 1.0 / 64;
constexpr double kMostReturn = 0.75;                         // from that share on all places are kept whole
constexpr double kDeviations = 8;                            // exponential gaps exceed that in 1 of 1,000 cases
constexpr double kFirstGuess = 10, kLeast = 1, kMost = 120;  // seconds

}  // namespace

void Places::Leave(Key key, Nanos now, Nanos since, uint64_t slots) {
  if (const auto known = away_.find(key); known != away_.end()) {
    LosePlace(known->second, key);
    late_.erase({known->second.left, key});
  }
  away_[key] = {now, since, slots};
  kept_.insert({now, key});
  kept_slots_ += slots;
  if (away_.size() > kMostKnown) ForgetOldest();
}

Places::Return Places::Come(Key key, Nanos now) {
  const auto known = away_.find(key);
  const Away away = known->second;
  away_.erase(known);
  late_.erase({away.left, key});
  const double gap = ToSeconds(now - away.left);
  if (!std::exchange(learnt_, true)) {
    gap_ = gap;
    deviation_ = gap / 2;
  } else {
    deviation_ += kNewest * (std::abs(gap - gap_) - deviation_);
    gap_ += kNewest * (gap - gap_);
  }
  const bool kept = LosePlace(away, key);
  if (kept) LearnReturn(true);
  return {kept, away.since};
}

uint64_t Places::kept_slots() const {
  return static_cast<uint64_t>(std::min(return_share_ / kMostReturn, 1.0) * static_cast<double>(kept_slots_));
}

void Places::LearnReturn(bool returned) { return_share_ += kNewestReturn * ((returned ? 1 : 0) - return_share_); }

void Places::Expire(Nanos now) {
  const Nanos oldest_kept = now - kept_for();
  while (!kept_.empty() && kept_.begin()->first < oldest_kept) {
    const auto oldest = *kept_.begin();
    LosePlace(away_.at(oldest.second), oldest.second);
    LearnReturn(false);
    late_.insert(oldest);
  }
  while (!late_.empty() && late_.begin()->first < now - kKnownFor) ForgetOldest();
}

bool Places::LosePlace(const Away& away, Key key) {
  if (kept_.erase({away.left, key}) == 0) return false;
  kept_slots_ -= away.slots;
  return true;
}

void Places::ForgetOldest() {
  const Key key = late_.empty() ? kept_.begin()->second : late_.begin()->second;
  const Away away = away_.at(key);
  LosePlace(away, key);
  late_.erase({away.left, key});
  away_.erase(key);
}

Nanos Places::kept_for() const {
  const double seconds = !learnt_ ? kFirstGuess : std::clamp(gap_ + kDeviations * deviation_, kLeast, kMost);
  return Nanos(std::llround(seconds * 1e9));
}

}  // namespace cachalot::sched
