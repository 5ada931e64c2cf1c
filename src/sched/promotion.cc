#include "sched/promotion.h"

#include "base/check.h"

namespace cachalot::sched {

void Promotion::Enter(PromotionId id, uint64_t bytes, Nanos since) {
  const bool is_new = entries_.emplace(id, Entry{.bytes = bytes, .since = since}).second;
  CACHALOT_CHECK(is_new);
  waiting_.emplace(since, id);
}

std::vector<PromotionId> Promotion::Admit() {
  std::vector<PromotionId> admitted;
  while (!waiting_.empty()) {
    const PromotionId oldest = waiting_.begin()->second;
    Entry& entry = entries_.at(oldest);
    const bool fits = in_flight_bytes_ <= limit_bytes_ && entry.bytes <= limit_bytes_ - in_flight_bytes_;
    if (!fits && in_flight_bytes_ > 0) break;
    entry.in_flight = true;
    in_flight_bytes_ += entry.bytes;
    waiting_.erase(waiting_.begin());
    admitted.push_back(oldest);
  }
  return admitted;
}

bool Promotion::Leave(PromotionId id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return false;
  const Entry& entry = found->second;
  if (entry.in_flight) {
    in_flight_bytes_ -= entry.bytes;
  } else {
    waiting_.erase({entry.since, id});
  }
  entries_.erase(found);
  return true;
}

bool Promotion::InFlight(PromotionId id) const {
  const auto found = entries_.find(id);
  return found != entries_.end() && found->second.in_flight;
}

uint64_t LookAheadOf(std::span<const uint64_t> queued_bytes, uint64_t tier_bytes) {
  uint64_t ahead = 0;
  for (const uint64_t bytes : queued_bytes) {
    if (bytes > tier_bytes) break;
    tier_bytes -= bytes;
    ++ahead;
  }
  return ahead;
}

}  // namespace cachalot::sched
