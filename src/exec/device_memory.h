// DeviceMemory owns the bytes behind the slots of the hot pool, and moves them.
// Threads:   calls come from the engine thread; kernels read and write arena() only inside a step.
// Ownership: owns the arena. Host buffers given to CopyOut/CopyIn must live until their ticket is done.
// Invariant: copies of one memory are done in the order given; a slot's bytes are the copy's only once its ticket is
//            done, and it went well; a failed copy never writes after its ticket is done.
// Cost:      the arena is claimed and touched at start.
//
// Backends: `cpu`, where the pool is ordinary memory and copies are done at once; `simlink`, a separate arena behind
// a link of given bandwidth and latency with asynchronous copies and completion events: the shape of a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/block_copy.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/status.h"

namespace cachalot::exec {

using CopyTicket = Id<struct CopyTicketTag, uint64_t>;

// Bytes from the host for a part of a slot.
struct SlotFill {
  std::span<const std::byte> host;
  SlotId to;
  uint64_t offset = 0;  // in the slot; the part ends within it
};

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  virtual const char* name() const = 0;
  // Where the device's kernels see slot 0; slots follow each other.
  virtual std::byte* arena() = 0;
  virtual uint64_t slot_bytes() const = 0;
  virtual uint32_t slots() const = 0;

  // Start copies: inside the pool; of a whole slot to the host; from the host.
  virtual CopyTicket CopyWithin(std::span<const BlockCopy> copies) = 0;
  virtual CopyTicket CopyOut(SlotId from, std::span<std::byte> host) = 0;
  virtual CopyTicket CopyIn(std::span<const SlotFill> fills) = 0;
  CopyTicket CopyIn(std::span<const std::byte> slot, SlotId to) {
    const SlotFill fill{slot, to};
    return CopyIn({&fill, 1});
  }

  // Whether the copy is done, well or not, and with it all that were given before.
  virtual bool Done(CopyTicket ticket) = 0;
  // Returns once it is. kUnavailable: it failed, and what it was to write is not there.
  virtual Status Wait(CopyTicket ticket) = 0;
  // When the next copy is thought to be done; nothing: none is under way.
  virtual std::optional<Nanos> NextDone() const = 0;
  // That all calls of Wait took together.
  virtual Nanos waited() const = 0;
  // Whether a copy may still be under way when the call that gives it has returned.
  virtual bool asynchronous() const = 0;

  // Whether the first `bytes` of two slots are equal. kUnavailable: they could not be read. Copies both out and waits.
  virtual Result<bool> Same(SlotId a, SlotId b, uint64_t bytes);
};

// kUnavailable, with asked and available bytes, when the memory cannot be claimed.
Result<std::unique_ptr<DeviceMemory>> MakeCpuMemory(uint64_t slot_bytes, uint32_t slots);

struct LinkSpec {
  double bytes_per_second = 16e9;
  Nanos latency{10'000};
};
// Copies take latency + bytes/bandwidth of `clock`'s time, one after the other per direction (within, out, in); one
// that would overtake an earlier copy of another direction is done together with it. Bytes move when a call finds that
// time has passed. Unwritten slots hold NaNs, so that reading one shows.
Result<std::unique_ptr<DeviceMemory>> MakeSimLinkMemory(uint64_t slot_bytes, uint32_t slots, const LinkSpec& link,
                                                        Clock& clock);

}  // namespace cachalot::exec
