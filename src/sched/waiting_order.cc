#include "sched/waiting_order.h"

#include <algorithm>

namespace cachalot::sched {

std::span<const uint32_t> WaitingOrder::Of(std::span<const WaitingView> waiting, uint32_t patience) {
  keys_.clear();
  for (uint32_t i = 0; i < waiting.size(); ++i) {
    const bool overdue = waiting[i].overtaken >= patience;
    keys_.push_back({waiting[i].tenant.value, i, overdue ? 0 : UINT64_MAX - waiting[i].resident_tokens});
  }
  std::ranges::sort(keys_, [](const Key& a, const Key& b) {
    if (a.tenant != b.tenant) return a.tenant < b.tenant;
    return a.rank != b.rank ? a.rank < b.rank : a.index < b.index;
  });
  order_.clear();
  for (const Key& key : keys_) order_.push_back(key.index);
  return order_;
}

}  // namespace cachalot::sched
