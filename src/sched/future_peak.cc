#include "sched/future_peak.h"

#include <algorithm>
#include <functional>

namespace cachalot::sched {
namespace {

constexpr size_t kKept = 512;
constexpr double kQuantile = 0.8;

}  // namespace

uint64_t FuturePeak(std::span<const GrowthView> batch) {
  std::vector<GrowthView> sorted(batch.begin(), batch.end());
  std::ranges::stable_sort(sorted, std::greater<>(), &GrowthView::remaining);
  uint64_t peak = 0, held = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    held += sorted[i].current;
    peak = std::max(peak, sorted[i].remaining * (i + 1) + held);
  }
  return peak;
}

void OutputLengths::Record(uint32_t tokens) {
  if (lengths_.size() < kKept) {
    lengths_.push_back(tokens);
  } else {
    lengths_[next_++ % kKept] = tokens;
  }
}

uint32_t OutputLengths::Predict(uint32_t generated, uint32_t limit) const {
  std::vector<uint32_t> longer;
  std::ranges::copy_if(lengths_, std::back_inserter(longer), [&](uint32_t tokens) { return tokens > generated; });
  if (longer.empty()) return limit;
  const auto at = longer.begin() + static_cast<ptrdiff_t>(kQuantile * static_cast<double>(longer.size() - 1));
  std::nth_element(longer.begin(), at, longer.end());
  return std::min(*at, limit);
}

}  // namespace cachalot::sched
