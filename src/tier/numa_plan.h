// NumaPlan says on which memory node each part of the host arena is to lie: near the device or the threads that read
// it.
// Threads:   plain data and pure functions; ReadNumaTopology reads a few small files.
// Ownership: none.
// Invariant: the shares follow each other from offset 0, each a multiple of a large page but perhaps the last; with
//            unplaced_bytes they add up to what was asked for.
// Cost:      O(nodes²).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace cachalot::tier {

struct NumaNode {
  uint32_t id = 0;
  std::vector<uint32_t> cpus;
  uint64_t available_bytes = 0;     // free, or file cache
  std::vector<uint32_t> distances;  // to every node of the topology, in its order
};

struct NumaTopology {
  std::vector<NumaNode> nodes;  // ascending by id
};

// kUnavailable when the folder, laid out as /sys/devices/system/node, cannot be read or understood.
Result<NumaTopology> ReadNumaTopology(const std::string& folder = "/sys/devices/system/node");

// Processors that this process may run on, ascending.
std::vector<uint32_t> AffinityCpus();
// Ids of the nodes that have one of `cpus`.
std::vector<uint32_t> NodesOf(const NumaTopology& topology, std::span<const uint32_t> cpus);

struct NumaShare {
  uint32_t node = 0;
  uint32_t distance = 0;  // to the nearest node that it should be near to; 0 when it should be near to none
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool operator==(const NumaShare&) const = default;
};

struct NumaPlan {
  std::vector<NumaShare> shares;
  uint64_t unplaced_bytes = 0;  // at the end, wherever the system finds room
};

// Nearest nodes first, those equally near alike, each up to `most` of what it has available. `near` holds node ids;
// with none all nodes are equally near.
NumaPlan PlanNuma(const NumaTopology& topology, uint64_t bytes, std::span<const uint32_t> near, double most);

// One line to print at start.
std::string Describe(const NumaPlan& plan);

}  // namespace cachalot::tier
