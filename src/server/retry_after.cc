#include "server/retry_after.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace cachalot::server {
namespace {

constexpr double kMostSeconds = 60;
constexpr Nanos kWindow = std::chrono::seconds(60);
constexpr Nanos kStep = std::chrono::seconds(1);

}  // namespace

uint32_t RetryAfterSeconds(uint64_t waiting, uint64_t finished, Nanos window) {
  if (waiting == 0) return 1;
  if (finished == 0) return static_cast<uint32_t>(kMostSeconds);
  const double expected =
      static_cast<double>(waiting) * static_cast<double>(window.count()) / (static_cast<double>(finished) * 1e9);
  return static_cast<uint32_t>(std::clamp(std::ceil(expected), 1.0, kMostSeconds));
}

void FinishRate::Note(Nanos now, uint64_t total) {
  if (marks_.empty() || now - marks_.back().time >= kStep) marks_.push_back({now, 0});
  marks_.back().total = total;
  while (marks_.size() > 1 && now - marks_[1].time >= kWindow) marks_.pop_front();
}

uint32_t FinishRate::RetryAfter(Nanos now, uint64_t waiting) const {
  const Nanos begin = std::max(started_, now - kWindow);
  uint64_t before = 0, total = 0;
  for (const Mark& mark : marks_) {
    if (begin > started_ && mark.time <= begin) before = mark.total;
    total = mark.total;
  }
  return RetryAfterSeconds(waiting, total - before, now - begin);
}

}  // namespace cachalot::server
