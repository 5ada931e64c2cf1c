#include "load/schedule.h"

#include <algorithm>
#include <cmath>

namespace cachalot::load {

Arrivals Arrivals::ClosedLoop(uint32_t clients) {
  Arrivals arrivals(0);
  arrivals.clients_ = clients;
  return arrivals;
}

Arrivals Arrivals::Poisson(double per_second, uint64_t seed) {
  Arrivals arrivals(seed);
  arrivals.mean_gap_ns_ = 1e9 / per_second;
  return arrivals;
}

Arrivals Arrivals::At(std::vector<Nanos> times) {
  Arrivals arrivals(0);
  arrivals.times_ = std::move(times);
  return arrivals;
}

std::optional<Nanos> Arrivals::Next() {
  if (mean_gap_ns_ > 0) {
    last_ns_ += -std::log1p(-random_.Uniform()) * mean_gap_ns_;
    if (last_ns_ > 9e18) return std::nullopt;
    return Nanos(static_cast<Nanos::rep>(last_ns_));
  }
  if (used_ == times_.size()) return std::nullopt;
  return times_[used_++];
}

Schedule::Schedule(Arrivals arrivals, const ScheduleLimits& limits) : arrivals_(std::move(arrivals)), limits_(limits) {
  for (uint32_t i = 0; i < arrivals_.clients(); ++i) AddSession(Nanos(0));
  if (arrivals_.clients() == 0) AddArrival();
}

void Schedule::Add(const TurnStart& start) {
  if (start.due < limits_.duration && taken_ < limits_.requests) queue_.push(start);
}

void Schedule::AddSession(Nanos due) {
  if (sessions_ < limits_.sessions) Add({.due = due, .session = sessions_++, .turn = 0});
}

void Schedule::AddArrival() {
  if (const std::optional<Nanos> due = arrivals_.Next()) AddSession(*due);
}

std::optional<TurnStart> Schedule::Take(Nanos now) {
  if (queue_.empty() || queue_.top().due > now || in_flight_ == limits_.max_in_flight) return std::nullopt;
  const TurnStart start = queue_.top();
  queue_.pop();
  ++in_flight_;
  if (++taken_ == limits_.requests) queue_ = {};
  if (start.turn == 0 && arrivals_.clients() == 0) AddArrival();
  return start;
}

std::optional<Nanos> Schedule::NextDue() const {
  if (queue_.empty() || in_flight_ == limits_.max_in_flight) return std::nullopt;
  return queue_.top().due;
}

void Schedule::ContinueAfter(const TurnStart& ended, Nanos now, Nanos think) {
  --in_flight_;
  const Nanos wait = std::min(think, Nanos::max() - now);
  Add({.due = now + wait, .session = ended.session, .turn = ended.turn + 1});
}

void Schedule::EndSession(Nanos now, bool failed) {
  --in_flight_;
  if (arrivals_.clients() > 0) AddSession(failed ? now + kPauseAfterFailure : now);
}

}  // namespace cachalot::load
