// How much memory and how many processors this process may use: the least of the machine's and its control group's.
// And what these call themselves.
// Threads:   any.
// Ownership: none.
// Invariant: available_bytes <= total_bytes.
// Cost:      a few small reads under /proc and /sys.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace cachalot {

struct MemoryInfo {
  uint64_t total_bytes;      // of the machine, or the control group's limit
  uint64_t available_bytes;  // what can still be claimed without swapping; file cache counts as available
  bool limited_by_cgroup;    // whether a control group is what bounds available_bytes
};

// `root` is put in front of /proc and /sys. kUnavailable when /proc/meminfo cannot be read or understood; a control
// group that cannot be read sets no limit. Versions 1 and 2 of control groups are understood, with limits of parents.
Result<MemoryInfo> ReadMemoryInfo(const std::string& root = "");

// Processors in the affinity mask, or fewer when a control group's quota allows fewer whole ones. At least 1.
uint32_t UsableCpus(const std::string& root = "");

// What the first processor calls itself, e.g. "AMD EPYC 7B12"; empty where the system does not say.
std::string ProcessorName(const std::string& root = "");

}  // namespace cachalot
