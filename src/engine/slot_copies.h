// SlotCopies are copies between slots and host bytes that are under way, and what is done when they have ended.
// Threads:   plain data of the engine thread.
// Ownership: owns what is copied from and to beside the slots, which the KvManager holds back meanwhile; ends before
//            the tiers that they belong to.
// Invariant: they end in the order in which they were begun.
// Cost:      none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "exec/device_memory.h"
#include "kv/kv_manager.h"
#include "tier/host_tier.h"
#include "tier/kv_run.h"
#include "tier/staging.h"

namespace cachalot::engine {

using WriteTicket = uint64_t;  // of a history whose writing somebody awaits; 0: nobody does

// Whose blocks are on their way down.
struct DownOwner {
  WriteTicket ticket = 0;
  uint64_t decision = 0;  // its number; 0: they are not
  uint64_t blocks = 0;
};

struct SlotCopies {
  std::vector<exec::CopyTicket> tickets;  // ascending; none: all of the run lay in host memory
  std::vector<SlotId> out, in;
  std::vector<tier::HostPin> pins;  // where slots are filled from
  tier::HostReservation cells;      // where they are copied to: then they are listed;
  tier::Staging staging;            // or where they are copied to: then the run is stored; or filled from
  tier::KvRun run;
  DownOwner owner;
  std::optional<kv::GivenUpBlock> given_up;  // whose cells they are; nothing: it was taken back, or deleted meanwhile
};

}  // namespace cachalot::engine
