// HostArena is the host memory of L1 and of transfers: claimed at start, touched, and placed on the nodes that read it.
// Threads:   claimed and released by one thread; its bytes belong to whom the owner gives them.
// Ownership: owns its pages. The owner carves it: staging first, the host tier behind it.
// Invariant: bytes() is exactly what was asked for; it begins at a page.
// Cost:      Claim writes every page once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/memory_info.h"
#include "base/status.h"
#include "tier/numa_plan.h"

namespace cachalot::tier {

struct HostClaim {
  uint64_t bytes = 0;
  double most_share = 0.8;           // of the available memory, that is claimed at most
  bool pin = false;                  // locked in memory, as devices want it for copies
  std::vector<uint32_t> near_nodes;  // where the device is; none: where this process may run
};

// kUnavailable, with asked and available bytes, when the claim is above its share; kInvalid when it asks for nothing.
Status CheckClaim(const HostClaim& claim, const MemoryInfo& memory);
// Why the system refused to pin: `limit_bytes` is RLIMIT_MEMLOCK.
Status PinRefused(uint64_t bytes, uint64_t limit_bytes, int error);

class HostArena {
 public:
  static Result<HostArena> Claim(const HostClaim& claim, const MemoryInfo& memory, const NumaTopology& topology);

  HostArena(HostArena&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})), placement_(std::move(other.placement_)) {}
  HostArena& operator=(HostArena&&) = delete;
  ~HostArena();

  std::span<std::byte> bytes() const { return bytes_; }
  // One line to print at start: where it lies, and what of that the system refused.
  const std::string& placement() const { return placement_; }

 private:
  explicit HostArena(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_;
  std::string placement_;
};

}  // namespace cachalot::tier
