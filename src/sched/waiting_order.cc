#include "sched/waiting_order.h"

#include <algorithm>
#include <numeric>

namespace cachalot::sched {

std::vector<uint32_t> OrderWaiting(std::span<const WaitingView> waiting, uint32_t patience) {
  std::vector<uint32_t> order(waiting.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) {
    const bool a_overdue = waiting[a].overtaken >= patience, b_overdue = waiting[b].overtaken >= patience;
    if (a_overdue != b_overdue) return a_overdue;
    return !a_overdue && waiting[a].resident_tokens > waiting[b].resident_tokens;
  });
  return order;
}

}  // namespace cachalot::sched
