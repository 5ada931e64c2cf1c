// What becomes of KV whose request has ended: pins, deadlines, and memory that is to be overwritten.
#include <algorithm>

#include <fmt/format.h>

#include "base/log.h"
#include "engine/engine_state.h"

namespace cachalot::engine {
namespace {

constexpr uint32_t kExpiredPerStep = 64;  // blocks; so that a step stays short, whatever has had its time at once
constexpr uint32_t kPinsPerStep = 16;     // that end

}  // namespace

RetentionHints Engine::State::HintsOf(const GenerateRequest& asked) const {
  RetentionHints hints = asked.retention;
  hints.scrub = hints.scrub || (options.scrub_expired && hints.ttl != Nanos::max());
  return hints;
}

// Of what has had its time, so much goes before anything is found; the rest in the steps after this.
void Engine::State::EndRetention() {
  if (pins.EndDue(now, kPinsPerStep) > 0) admission_due = true;
  kv.EvictExpired(kExpiredPerStep);
  if (host != nullptr) host->EraseExpired(now);
}

std::optional<Nanos> Engine::State::NextRetentionEnd() const {
  const Nanos host_expiry = host == nullptr ? Nanos::max() : host->NextExpiry();
  const Nanos next =
      std::min({pins.NextDeadline().value_or(Nanos::max()), kv.NextExpiry().value_or(Nanos::max()), host_expiry});
  return next == Nanos::max() ? std::nullopt : std::optional(next);
}

// Requires that the choice has given up its sequence, which had come so far.
RetentionReport Engine::State::Retain(const Request& request, const Choice& choice, uint64_t computed) {
  RetentionReport report{.kept = options.prefix_cache};
  const Nanos pin = request.asked.retention.pin;
  if (pin <= Nanos(0)) return report;
  const uint64_t pinned = pins.Pin(request.asked.scope, HistoryOf(request, choice).first(computed),
                                   now + std::min(pin, Nanos::max() - now));
  report.pinned_tokens = static_cast<uint32_t>(pinned);
  if (pinned == 0) {
    report.pin = PinOutcome::kRefused;
    ++totals.pins_refused;
  } else if (pinned < computed - computed % kv.geometry().block_tokens) {
    report.pin = PinOutcome::kShortened;
    ++totals.pins_shortened;
  } else {
    report.pin = PinOutcome::kWhole;
    ++totals.pins_whole;
  }
  return report;
}

// Before anything is copied into slots or computed: they may have been taken again.
void Engine::State::ScrubFreed() {
  const std::vector<SlotId> slots = kv.TakeToScrub();
  if (slots.empty()) return;
  zeros.resize(memory.slot_bytes());
  std::vector<exec::SlotFill> fills;
  for (const SlotId slot : slots) fills.push_back({zeros, slot});
  const Status done = memory.Wait(memory.CopyIn(fills));
  if (!done.ok()) LogError(fmt::format("KV that was to be overwritten may still be in memory: {}", done.message()));
  totals.slots_scrubbed += slots.size();
}

}  // namespace cachalot::engine
