#include "tier/disk_reclaim.h"

#include <algorithm>

namespace cachalot::tier {

double ValueOf(const BlockUse& use, uint64_t now, uint64_t turnover_bytes) {
  const auto age = static_cast<double>(now - std::min(now, use.last_use));
  const double turnovers = age / static_cast<double>(std::max<uint64_t>(turnover_bytes, 1));
  return static_cast<double>(use.bytes) * (use.read ? 2 : 1) / (1 + turnovers);
}

std::optional<uint64_t> LeastValuable(std::span<const SegmentView> segments) {
  const auto per_byte = [](const SegmentView& view) {
    return view.value / static_cast<double>(std::max<uint64_t>(view.occupied_bytes, 1));
  };
  const auto least = std::ranges::min_element(segments, {}, per_byte);
  if (least == segments.end()) return std::nullopt;
  return least->segment;
}

}  // namespace cachalot::tier
