// SimTiers are the tiers below a simulated hot pool: the server's own host tier and KV store, with transfers in virtual
// time and KV of which there is only the size.
// Threads:   one.
// Ownership: owns the tiers; the engine over them ends first.
// Invariant: decisions are those of the server's code: what host memory evicts, which segments a disk gives up, which
//            transfer is next. Equal options and calls give equal results.
// Cost:      about 100 bytes of memory per block in host memory, 300 per block on disk.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/kv_layout.h"
#include "base/status.h"
#include "base/tier_rate.h"
#include "exec/device_memory.h"
#include "sim/address_range.h"
#include "tier/disk_store.h"
#include "tier/host_tier.h"

namespace cachalot::sim {

struct SimTierOptions {
  std::optional<exec::LinkSpec> link;  // of the hot pool with the host; none: copies take no time, as on a CPU
  uint32_t host_blocks = 0;            // that host memory holds, each as large as one of the pool; 0: there is none
  std::string host_eviction{tier::CellEvictionNames().front()};
  uint64_t disk_blocks = 0;  // that the files have room for, what describes the blocks included; 0: there is no disk
  TierRate disk_read{100e-6, 3e9};
  TierRate disk_write{100e-6, 1.5e9};
};

// Each names the option, its value and what is allowed. Empty: valid for blocks of that size.
std::vector<std::string> Problems(const SimTierOptions& options, const KvLayout& layout);

class SimTiers {
 public:
  // Requires options without problems. kUnavailable when the system does not give as many addresses as there would be
  // bytes of host memory.
  static Result<std::unique_ptr<SimTiers>> Make(const SimTierOptions& options, const KvLayout& layout, Clock& clock);

  // Null: there is none.
  tier::HostTier* host() const { return host_.get(); }
  tier::KvStore* store() const { return store_.get(); }
  // Where KV in host memory lies; empty: there is none.
  std::span<const std::byte> host_bytes() const { return host_memory_.bytes(); }

 private:
  SimTiers() = default;
  Status MakeHost(const SimTierOptions& options, const KvLayout& layout);
  Status MakeStore(const SimTierOptions& options, const KvLayout& layout, Clock& clock);

  AddressRange host_memory_;
  std::unique_ptr<tier::HostTier> host_;
  std::unique_ptr<tier::DiskStore> store_;
};

}  // namespace cachalot::sim
