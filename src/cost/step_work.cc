#include "cost/step_work.h"

#include <algorithm>

namespace cachalot::cost {
namespace {

// 1 + 2 + ... + n.
uint64_t SumTo(uint64_t n) { return n % 2 == 0 ? n / 2 * (n + 1) : (n + 1) / 2 * n; }

// Positions that rows [0, end) see when none sees more than `window`.
uint64_t VisibleTo(uint64_t end, uint64_t window) {
  const uint64_t growing = std::min(end, window);
  return SumTo(growing) + (end - growing) * window;
}

}  // namespace

StepWork& StepWork::operator+=(const StepWork& other) {
  rows += other.rows;
  visible_full += other.visible_full;
  visible_sliding += other.visible_sliding;
  logit_rows += other.logit_rows;
  return *this;
}

WorkShape::WorkShape(std::span<const uint32_t> windows) : sliding_(windows.begin(), windows.end()) {
  std::ranges::sort(sliding_);
  sliding_.erase(std::unique(sliding_.begin(), sliding_.end()), sliding_.end());
  has_full_ = std::erase(sliding_, 0u) > 0;
}

StepWork WorkShape::Rows(uint64_t first, uint64_t rows, uint64_t logit_rows) const {
  StepWork work{.rows = rows, .logit_rows = logit_rows};
  if (has_full_) work.visible_full = SumTo(first + rows) - SumTo(first);
  for (const uint32_t window : sliding_) {
    work.visible_sliding += VisibleTo(first + rows, window) - VisibleTo(first, window);
  }
  return work;
}

}  // namespace cachalot::cost
