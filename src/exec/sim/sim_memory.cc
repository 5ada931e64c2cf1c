#include "exec/sim/sim_memory.h"

#include <algorithm>
#include <cmath>

namespace cachalot::exec {

CopyTicket SimMemory::CopyIn(std::span<const SlotFill> fills) {
  uint64_t bytes = 0;
  for (const SlotFill& fill : fills) bytes += fill.host.size();
  return Start(Way::kIn, bytes);
}

CopyTicket SimMemory::Start(Way way, uint64_t bytes) {
  bytes_[static_cast<size_t>(way)] += bytes;
  last_ticket_ = CopyTicket(last_ticket_.value + 1);
  if (!link_) return last_ticket_;
  constexpr double kLongestSeconds = 1e9;
  const double seconds = std::min(static_cast<double>(bytes) / link_->bytes_per_second, kLongestSeconds);
  Nanos& free_at = link_free_at_[static_cast<size_t>(way)];
  free_at = std::min(std::max(free_at, clock_.Now()), Nanos::max() / 2) + link_->latency +
            Nanos(static_cast<Nanos::rep>(std::ceil(seconds * 1e9)));
  last_done_at_ = std::max(last_done_at_, free_at);
  under_way_.push_back({last_ticket_, last_done_at_});
  return last_ticket_;
}

void SimMemory::DropDone() {
  while (!under_way_.empty() && under_way_.front().done_at <= clock_.Now()) under_way_.pop_front();
}

bool SimMemory::Done(CopyTicket ticket) {
  DropDone();
  return under_way_.empty() || ticket < under_way_.front().ticket;
}

Status SimMemory::Wait(CopyTicket ticket) {
  const auto copy = std::ranges::find(under_way_, ticket, &Copy::ticket);
  if (copy == under_way_.end()) return OkStatus();
  const Nanos begun = clock_.Now();
  clock_.SleepUntil(copy->done_at);
  waited_ += clock_.Now() - begun;
  DropDone();
  return OkStatus();
}

std::optional<Nanos> SimMemory::NextDone() const {
  if (under_way_.empty()) return std::nullopt;
  return under_way_.front().done_at;
}

}  // namespace cachalot::exec
