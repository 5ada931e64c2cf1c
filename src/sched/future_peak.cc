#include "sched/future_peak.h"

#include <algorithm>
#include <functional>
#include <utility>

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

void FuturePeakWith::SetBatch(std::span<const GrowthView> batch) {
  sorted_.assign(batch.begin(), batch.end());
  std::ranges::sort(sorted_, std::greater<>(), &GrowthView::remaining);
  const size_t n = sorted_.size();
  held_.assign(n + 1, 0);
  before_.assign(n + 1, 0);
  after_.assign(n + 1, 0);
  for (size_t i = 0; i < n; ++i) {
    held_[i + 1] = held_[i] + sorted_[i].current;
    before_[i + 1] = std::max(before_[i], sorted_[i].remaining * (i + 1) + held_[i + 1]);
  }
  for (size_t i = n; i > 0; --i) after_[i - 1] = std::max(after_[i], sorted_[i - 1].remaining * (i + 1) + held_[i]);
}

uint64_t FuturePeakWith::With(const GrowthView& one) const {
  const auto at = std::ranges::upper_bound(sorted_, one.remaining, std::greater<>(), &GrowthView::remaining);
  const auto i = static_cast<size_t>(at - sorted_.begin());
  const uint64_t own = one.remaining * (i + 1) + held_[i] + one.current;
  const uint64_t later = i == sorted_.size() ? 0 : after_[i] + one.current;
  return std::max({before_[i], own, later});
}

void OutputLengths::Record(uint32_t tokens) {
  sum_ += tokens;
  sorted_.insert(std::ranges::upper_bound(sorted_, tokens), tokens);
  if (lengths_.size() < kKept) {
    lengths_.push_back(tokens);
  } else {
    const uint32_t oldest = std::exchange(lengths_[next_++ % kKept], tokens);
    sum_ -= oldest;
    sorted_.erase(std::ranges::lower_bound(sorted_, oldest));
  }
}

std::optional<uint32_t> OutputLengths::Mean() const {
  if (lengths_.empty()) return std::nullopt;
  return static_cast<uint32_t>((sum_ + lengths_.size() / 2) / lengths_.size());
}

uint32_t OutputLengths::Predict(uint32_t generated, uint32_t limit) const {
  const auto longer = std::ranges::upper_bound(sorted_, generated);
  if (longer == sorted_.end()) return limit;
  const auto at = static_cast<ptrdiff_t>(kQuantile * static_cast<double>(sorted_.end() - longer - 1));
  return std::min(longer[at], limit);
}

}  // namespace cachalot::sched
