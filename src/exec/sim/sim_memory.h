// SimMemory is a hot pool that holds nothing: copies are timed and counted, and no byte is moved. So a simulation has a
// pool of any size.
// Threads:   as DeviceMemory.
// Ownership: borrows the clock.
// Invariant: copies end when those of MakeSimLinkMemory would. arena() is null.
// Cost:      a few bytes per copy under way.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "base/clock.h"
#include "exec/device_memory.h"

namespace cachalot::exec {

class SimMemory final : public DeviceMemory {
 public:
  // Without a link copies are done at once, as on a CPU. Requires a link with a bandwidth above 0.
  SimMemory(uint64_t slot_bytes, uint32_t slots, const std::optional<LinkSpec>& link, Clock& clock)
      : slot_bytes_(slot_bytes), slots_(slots), link_(link), clock_(clock) {}

  const char* name() const override { return "sim"; }
  std::byte* arena() override { return nullptr; }
  uint64_t slot_bytes() const override { return slot_bytes_; }
  uint32_t slots() const override { return slots_; }

  CopyTicket CopyWithin(std::span<const BlockCopy> copies) override {
    return Start(Way::kWithin, copies.size() * slot_bytes_);
  }
  CopyTicket CopyOut(SlotId, std::span<std::byte>) override { return Start(Way::kOut, slot_bytes_); }
  CopyTicket CopyIn(std::span<const SlotFill> fills) override;
  bool Done(CopyTicket ticket) override;
  Status Wait(CopyTicket ticket) override;
  std::optional<Nanos> NextDone() const override;
  Nanos waited() const override { return waited_; }
  bool asynchronous() const override { return link_.has_value(); }

  // That were to be copied to the host and from it.
  uint64_t bytes_out() const { return bytes_[static_cast<size_t>(Way::kOut)]; }
  uint64_t bytes_in() const { return bytes_[static_cast<size_t>(Way::kIn)]; }

 private:
  enum class Way : uint8_t { kWithin, kOut, kIn };
  struct Copy {
    CopyTicket ticket;
    Nanos done_at;  // never falls
  };

  CopyTicket Start(Way way, uint64_t bytes);
  void DropDone();

  const uint64_t slot_bytes_;
  const uint32_t slots_;
  const std::optional<LinkSpec> link_;
  Clock& clock_;
  std::deque<Copy> under_way_;
  std::array<Nanos, 3> link_free_at_{};  // by Way
  std::array<uint64_t, 3> bytes_{};      // likewise
  Nanos last_done_at_{0};
  CopyTicket last_ticket_{0};
  Nanos waited_{0};
};

}  // namespace cachalot::exec
