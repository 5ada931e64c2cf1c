// What a device's memory answers of copies, as an input log hears it.
#include <memory>

#include "engine/input_log.h"
#include "exec/device_memory.h"

namespace cachalot::engine {
namespace {

class LoggedMemory final : public exec::DeviceMemory {
 public:
  LoggedMemory(exec::DeviceMemory& memory, InputLog& log) : memory_(memory), log_(log) {}

  const char* name() const override { return memory_.name(); }
  std::byte* arena() override { return memory_.arena(); }
  uint64_t slot_bytes() const override { return memory_.slot_bytes(); }
  uint32_t slots() const override { return memory_.slots(); }
  exec::CopyTicket CopyWithin(std::span<const BlockCopy> copies) override { return memory_.CopyWithin(copies); }
  exec::CopyTicket CopyOut(SlotId from, std::span<std::byte> host) override { return memory_.CopyOut(from, host); }
  exec::CopyTicket CopyIn(std::span<const exec::SlotFill> fills) override { return memory_.CopyIn(fills); }
  std::optional<Nanos> NextDone() const override { return memory_.NextDone(); }
  Nanos waited() const override { return memory_.waited(); }
  bool asynchronous() const override { return memory_.asynchronous(); }

  bool Done(exec::CopyTicket ticket) override {
    const bool done = memory_.Done(ticket);
    log_.NoteCopy(done ? CopyAnswer::kDone : CopyAnswer::kUnderWay);
    return done;
  }
  Status Wait(exec::CopyTicket ticket) override {
    Status status = memory_.Wait(ticket);
    log_.NoteCopy(status.ok() ? CopyAnswer::kWell : CopyAnswer::kFailed);
    return status;
  }
  Result<bool> Same(SlotId a, SlotId b, uint64_t bytes) override {
    const Result<bool> same = memory_.Same(a, b, bytes);
    log_.NoteCopy(!same.ok() ? CopyAnswer::kFailed : *same ? CopyAnswer::kWell : CopyAnswer::kDiffers);
    return same;
  }

 private:
  exec::DeviceMemory& memory_;
  InputLog& log_;
};

}  // namespace

std::unique_ptr<exec::DeviceMemory> MakeLoggedMemory(exec::DeviceMemory& memory, InputLog& log) {
  return std::make_unique<LoggedMemory>(memory, log);
}

}  // namespace cachalot::engine
