#include <cstring>
#include <utility>

#include "base/check.h"
#include "exec/device_memory.h"
#include "exec/device_memory_arena.h"

namespace cachalot::exec {
namespace {

// Every copy is done before the call that gives it returns.
class CpuMemory final : public DeviceMemory {
 public:
  explicit CpuMemory(Arena arena) : arena_(std::move(arena)) {}

  const char* name() const override { return "cpu"; }
  std::byte* arena() override { return arena_.data(); }
  uint64_t slot_bytes() const override { return arena_.slot_bytes(); }
  uint32_t slots() const override { return arena_.slots(); }

  CopyTicket CopyWithin(std::span<const BlockCopy> copies) override {
    for (const BlockCopy& copy : copies) {
      CACHALOT_CHECK(copy.from != copy.to);
      std::memcpy(arena_.Slot(copy.to.value), arena_.Slot(copy.from.value), slot_bytes());
    }
    return NextTicket();
  }

  CopyTicket CopyOut(SlotId from, std::span<std::byte> host) override {
    CACHALOT_CHECK(host.size() == slot_bytes());
    std::memcpy(host.data(), arena_.Slot(from.value), slot_bytes());
    return NextTicket();
  }

  CopyTicket CopyIn(std::span<const SlotFill> fills) override {
    for (const SlotFill& fill : fills) {
      CACHALOT_CHECK(fill.offset <= slot_bytes() && fill.host.size() <= slot_bytes() - fill.offset);
      std::memcpy(arena_.Slot(fill.to.value) + fill.offset, fill.host.data(), fill.host.size());
    }
    return NextTicket();
  }

  bool Done(CopyTicket ticket) override {
    CACHALOT_CHECK(ticket <= last_ticket_);
    return true;
  }
  Status Wait(CopyTicket ticket) override {
    CACHALOT_CHECK(Done(ticket));
    return OkStatus();
  }
  std::optional<Nanos> NextDone() const override { return std::nullopt; }
  Nanos waited() const override { return Nanos(0); }
  bool asynchronous() const override { return false; }

 private:
  CopyTicket NextTicket() { return last_ticket_ = CopyTicket(last_ticket_.value + 1); }

  Arena arena_;
  CopyTicket last_ticket_{0};
};

}  // namespace

Result<std::unique_ptr<DeviceMemory>> MakeCpuMemory(uint64_t slot_bytes, uint32_t slots) {
  CACHALOT_ASSIGN_OR_RETURN(Arena arena, Arena::Claim(slot_bytes, slots, 0));
  return std::unique_ptr<DeviceMemory>(std::make_unique<CpuMemory>(std::move(arena)));
}

}  // namespace cachalot::exec
