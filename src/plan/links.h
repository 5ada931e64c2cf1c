// The planner's links: how fast bytes move between devices, memories, disks and machines.
// Threads:   constant data.
// Ownership: static.
// Invariant: names are unique; rates are of one direction, as the standard states them, before any protocol.
// Cost:      none.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/tier_rate.h"
#include "plan/devices.h"

namespace cachalot::plan {

enum class LinkKind : uint8_t { kDevice, kHost, kDisk, kNetwork };

struct Link {
  std::string_view name;
  std::string_view title;
  LinkKind kind = LinkKind::kHost;
  double bytes_per_second = 0;
  double latency_seconds = 0;  // of one small transfer, as usually measured
  std::string_view source;
};

std::span<const Link> Links();
// Null when there is none of that name.
const Link* FindLink(std::string_view name);
// Those that a device has or may be given: its own to neighbours and host, disks and networks.
std::vector<Link> LinksOf(const Device& device);
// What of it one gets: `share` of its rate.
TierRate UsableRate(const Link& link, double share);

}  // namespace cachalot::plan
