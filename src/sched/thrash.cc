#include "sched/thrash.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cachalot::sched {
namespace {

constexpr double kMemorySeconds = 60;
constexpr double kNewest = 1.0 / 32;  // weight of one request among the last ones

constexpr double kThrashing = 0.05;     // share of refaults above which there is less room than was thought
constexpr double kCalm = 0.03;          // and below which there may be more
constexpr double kWaiting = 0.5;        // share of the last ten seconds in which requests waited
constexpr double kClearly = 1.5;        // times as fast
constexpr double kDecrease = 0.9;       // by little: whoever loses its place has to be loaded again
constexpr uint64_t kIncreasePart = 32;  // of the pool
constexpr Nanos kSettles = std::chrono::seconds(30);    // until a change shows
constexpr Nanos kForgotten = std::chrono::seconds(60);  // a limit that nobody needs

}  // namespace

double Thrash::refault_share() const { return computed_ > 0 ? std::min(refaults_ / computed_, 1.0) : 0; }

void Thrash::Observe(const ThrashInput& input) {
  const Nanos elapsed = input.now - std::exchange(now_, input.now);
  pressure_.Observe(elapsed, input.some_wait, input.all_wait);
  Learn(input, ToSeconds(elapsed));
  if (input.outside > 0) last_outside_ = input.now;
  if (limit_ && input.now - last_outside_ > kForgotten) limit_.reset();
  if (input.now - moved_ >= kSettles) Move(input);
}

void Thrash::Learn(const ThrashInput& input, double seconds) {
  const double kept = std::exp(-seconds / kMemorySeconds);
  computed_ = computed_ * kept + static_cast<double>(input.computed_tokens);
  refaults_ = refaults_ * kept + static_cast<double>(input.refault_tokens);
  finish_rate_ = finish_rate_ * kept + input.finished / kMemorySeconds;
  if (input.finished == 0) return;
  const double weight = -std::expm1(-kNewest * input.finished);
  run_seconds_ += weight * (ToSeconds(input.ran) / input.finished - run_seconds_);
  conversation_slots_ += weight * (static_cast<double>(input.held_slots) / input.finished - conversation_slots_);
}

// Conversations whose KV fits the pool together.
double Thrash::Fitting() const {
  return conversation_slots_ > 0 ? std::max(static_cast<double>(pool_slots_) / conversation_slots_, 1.0) : 1;
}

// Each of those that fit would take a turn per gap and run, and a run would not compute again what was lost; nor does
// the machine get more done than it computes, less what it computes in vain now.
bool Thrash::Pays(const ThrashInput& input) const {
  const double kept_share = 1 - refault_share();
  const double turn_seconds = input.return_share * input.gap_seconds + run_seconds_ * kept_share;
  return kClearly * kept_share < 1 && Fitting() > kClearly * finish_rate_ * turn_seconds;
}

void Thrash::Move(const ThrashInput& input) {
  const bool thrash = refault_share() > kThrashing && pressure_.levels().some.shares[0] > kWaiting;
  if (thrash && (limit_ ? input.taken_slots <= *limit_ : Pays(input))) {  // the last decrease shows already
    const double fewer = kDecrease * static_cast<double>(std::min(input.taken_slots, pool_slots_));
    limit_ = static_cast<uint64_t>(std::max({fewer, conversation_slots_, 1.0}));
    last_outside_ = input.now;
    ++decreases_;
  } else if (limit_ && refault_share() < kCalm && input.outside > 0) {
    *limit_ += std::max<uint64_t>(pool_slots_ / kIncreasePart, 1);
  } else {
    return;
  }
  moved_ = input.now;
}

}  // namespace cachalot::sched
