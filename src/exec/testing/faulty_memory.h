// FaultyMemory is a DeviceMemory of which some copies in, or one out, fail: they take their time and write nothing.
// Others end between two questions whether they have.
// Threads:   as the memory that it wraps.
// Ownership: owns that memory.
// Invariant: equal calls fail equally.
// Cost:      as that memory.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "base/random.h"
#include "exec/device_memory.h"

namespace cachalot::exec {

class FaultyMemory final : public DeviceMemory {
 public:
  explicit FaultyMemory(std::unique_ptr<DeviceMemory> memory) : memory_(std::move(memory)) {}

  // The `nth` from now (1: the next).
  void FailCopyIn(uint64_t nth) { fail_at_ = copies_in_ + nth; }
  // Likewise of those out.
  void FailCopyOut(uint64_t nth) { fail_out_at_ = copies_out_ + nth; }
  // This share of all copies in from now on.
  void FailSome(double share, uint64_t seed) {
    fail_share_ = share;
    random_ = SplitMix64(seed);
  }
  // Of copies that have ended, this share of the questions is answered as if they had not yet.
  void EndLate(double share, uint64_t seed) {
    late_share_ = share;
    random_ = SplitMix64(seed);
  }
  uint64_t copies_in() const { return copies_in_; }
  uint64_t failed() const { return failed_.size(); }

  const char* name() const override { return memory_->name(); }
  std::byte* arena() override { return memory_->arena(); }
  uint64_t slot_bytes() const override { return memory_->slot_bytes(); }
  uint32_t slots() const override { return memory_->slots(); }
  CopyTicket CopyWithin(std::span<const BlockCopy> copies) override { return memory_->CopyWithin(copies); }
  CopyTicket CopyOut(SlotId from, std::span<std::byte> host) override {
    if (++copies_out_ != fail_out_at_) return memory_->CopyOut(from, host);
    return *failed_.insert(memory_->CopyIn(std::span<const SlotFill>())).first;
  }
  using DeviceMemory::CopyIn;
  CopyTicket CopyIn(std::span<const SlotFill> fills) override {
    const bool fails = ++copies_in_ == fail_at_ || (fail_share_ > 0 && random_.Uniform() < fail_share_);
    if (!fails) return memory_->CopyIn(fills);
    return *failed_.insert(memory_->CopyIn(std::span<const SlotFill>())).first;
  }
  bool Done(CopyTicket ticket) override {
    if (ticket <= known_done_) return true;
    if (!memory_->Done(ticket) || (late_share_ > 0 && random_.Uniform() < late_share_)) return false;
    known_done_ = ticket;
    return true;
  }
  Status Wait(CopyTicket ticket) override {
    CACHALOT_RETURN_IF_ERROR(memory_->Wait(ticket));
    known_done_ = std::max(known_done_, ticket);
    return failed_.contains(ticket) ? Unavailable("the copy failed, as was asked for") : OkStatus();
  }
  std::optional<Nanos> NextDone() const override { return memory_->NextDone(); }
  Nanos waited() const override { return memory_->waited(); }
  bool asynchronous() const override { return memory_->asynchronous(); }

 private:
  const std::unique_ptr<DeviceMemory> memory_;
  std::set<CopyTicket> failed_;
  uint64_t copies_in_ = 0;
  uint64_t fail_at_ = 0;
  uint64_t copies_out_ = 0;
  uint64_t fail_out_at_ = 0;
  double fail_share_ = 0;
  double late_share_ = 0;
  CopyTicket known_done_{0};
  SplitMix64 random_{0};
};

}  // namespace cachalot::exec
