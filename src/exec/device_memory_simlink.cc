#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "exec/device_memory.h"
#include "exec/device_memory_arena.h"

namespace cachalot::exec {
namespace {

// An all-ones word is a NaN in f32, f16 and bf16: reading a slot before it was filled shows in every logit.
constexpr uint8_t kPoison = 0xFF;
constexpr double kLongestCopySeconds = 1e9;
constexpr Nanos kFarFuture = Nanos::max() / 2;  // queues of longest copies end here instead of wrapping around

enum class Direction : uint8_t { kWithin = 0, kOut = 1, kIn = 2 };
constexpr size_t kDirections = 3;

struct Copy {
  CopyTicket ticket;
  Nanos done_at;
  Direction direction;
  std::vector<BlockCopy> within;  // kWithin
  SlotId slot;                    // kOut
  std::byte* out = nullptr;       // kOut
  std::vector<SlotFill> fills;    // kIn
};

// Bytes move only when a call finds that the clock has reached a copy's end, so that whoever reads or reuses them too
// early gets the wrong ones. Each direction has a link of its own; a copy that would overtake an earlier one of
// another direction is done together with it.
class SimLinkMemory final : public DeviceMemory {
 public:
  SimLinkMemory(Arena arena, const LinkSpec& link, Clock& clock)
      : arena_(std::move(arena)), link_(link), clock_(clock) {}

  const char* name() const override { return "simlink"; }
  std::byte* arena() override { return arena_.data(); }
  uint64_t slot_bytes() const override { return arena_.slot_bytes(); }
  uint32_t slots() const override { return arena_.slots(); }

  CopyTicket CopyWithin(std::span<const BlockCopy> copies) override {
    for (const BlockCopy& copy : copies) {
      CACHALOT_CHECK(copy.from != copy.to && copy.from.value < slots() && copy.to.value < slots());
    }
    Copy& copy = Start(Direction::kWithin, copies.size() * slot_bytes());
    copy.within.assign(copies.begin(), copies.end());
    return copy.ticket;
  }

  CopyTicket CopyOut(SlotId from, std::span<std::byte> host) override {
    CACHALOT_CHECK(host.size() == slot_bytes() && from.value < slots());
    Copy& copy = Start(Direction::kOut, slot_bytes());
    copy.slot = from;
    copy.out = host.data();
    return copy.ticket;
  }

  CopyTicket CopyIn(std::span<const SlotFill> fills) override {
    uint64_t bytes = 0;
    for (const SlotFill& fill : fills) {
      CACHALOT_CHECK(fill.to.value < slots() && fill.offset <= slot_bytes() &&
                     fill.host.size() <= slot_bytes() - fill.offset);
      bytes += fill.host.size();
    }
    Copy& copy = Start(Direction::kIn, bytes);
    copy.fills.assign(fills.begin(), fills.end());
    return copy.ticket;
  }

  bool Done(CopyTicket ticket) override {
    CACHALOT_CHECK(ticket <= last_ticket_);
    FinishDue();
    return in_flight_.empty() || ticket < in_flight_.front().ticket;
  }

  Status Wait(CopyTicket ticket) override {
    CACHALOT_CHECK(ticket <= last_ticket_);
    for (const Copy& copy : in_flight_) {
      if (copy.ticket != ticket) continue;
      const Nanos begun = clock_.Now();
      clock_.SleepUntil(copy.done_at);
      waited_ += clock_.Now() - begun;
      break;
    }
    FinishDue();
    return OkStatus();
  }

  std::optional<Nanos> NextDone() const override {
    return in_flight_.empty() ? std::nullopt : std::optional(in_flight_.front().done_at);
  }
  Nanos waited() const override { return waited_; }
  bool asynchronous() const override { return true; }

 private:
  Nanos TimeFor(uint64_t bytes) const {
    const double seconds = std::min(static_cast<double>(bytes) / link_.bytes_per_second, kLongestCopySeconds);
    return link_.latency + Nanos(static_cast<Nanos::rep>(std::ceil(seconds * 1e9)));
  }

  Copy& Start(Direction direction, uint64_t bytes) {
    Nanos& link_free_at = link_free_at_[static_cast<size_t>(direction)];
    link_free_at = std::min(std::max(link_free_at, clock_.Now()), kFarFuture) + TimeFor(bytes);
    last_done_at_ = std::max(last_done_at_, link_free_at);
    last_ticket_ = CopyTicket(last_ticket_.value + 1);
    Copy& copy = in_flight_.emplace_back();
    copy.ticket = last_ticket_;
    copy.done_at = last_done_at_;
    copy.direction = direction;
    return copy;
  }

  void FinishDue() {
    const Nanos now = clock_.Now();
    for (; !in_flight_.empty() && in_flight_.front().done_at <= now; in_flight_.pop_front()) {
      Move(in_flight_.front());
    }
  }

  void Move(const Copy& copy) {
    switch (copy.direction) {
      case Direction::kWithin:
        for (const BlockCopy& c : copy.within) {
          std::memcpy(arena_.Slot(c.to.value), arena_.Slot(c.from.value), slot_bytes());
        }
        return;
      case Direction::kOut: std::memcpy(copy.out, arena_.Slot(copy.slot.value), slot_bytes()); return;
      case Direction::kIn:
        for (const SlotFill& fill : copy.fills) {
          std::memcpy(arena_.Slot(fill.to.value) + fill.offset, fill.host.data(), fill.host.size());
        }
        return;
    }
  }

  Arena arena_;
  const LinkSpec link_;
  Clock& clock_;
  std::deque<Copy> in_flight_;  // in the order given; done_at never falls
  Nanos link_free_at_[kDirections] = {};
  Nanos last_done_at_{0};
  CopyTicket last_ticket_{0};
  Nanos waited_{0};
};

}  // namespace

Result<std::unique_ptr<DeviceMemory>> MakeSimLinkMemory(uint64_t slot_bytes, uint32_t slots, const LinkSpec& link,
                                                        Clock& clock) {
  if (!(link.bytes_per_second > 0) || link.latency < Nanos(0) || ToSeconds(link.latency) > kLongestCopySeconds) {
    return Invalid(
        fmt::format("simlink: {} bytes/s after {} ns; expected a bandwidth above 0 and a latency of 0 to {} s",
                    link.bytes_per_second, link.latency.count(), kLongestCopySeconds));
  }
  CACHALOT_ASSIGN_OR_RETURN(Arena arena, Arena::Claim(slot_bytes, slots, kPoison));
  return std::unique_ptr<DeviceMemory>(std::make_unique<SimLinkMemory>(std::move(arena), link, clock));
}

}  // namespace cachalot::exec
