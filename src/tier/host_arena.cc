#include "tier/host_arena.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/check.h"
#include "base/units.h"

namespace cachalot::tier {
namespace {

constexpr uint64_t kMaskBits = 1024;  // nodes that a kernel may have
constexpr uint64_t kBitsPerWord = 8 * sizeof(unsigned long);

// Asks for the node's memory first, and for any other when it is full. Returns 0, or the system's error.
int PreferNode(std::byte* begin, uint64_t bytes, uint32_t node) {
  unsigned long mask[kMaskBits / kBitsPerWord] = {};
  if (node >= kMaskBits) return EINVAL;
  mask[node / kBitsPerWord] = 1ul << (node % kBitsPerWord);
  return syscall(SYS_mbind, begin, bytes, MPOL_PREFERRED, mask, kMaskBits + 1, 0) == 0 ? 0 : errno;
}

// Returns what to print: a refusal only means that memory lies where the system puts it.
std::string Place(std::span<std::byte> bytes, const HostClaim& claim, const NumaTopology& topology) {
  if (topology.nodes.size() < 2) return "one memory node";
  std::vector<uint32_t> near = claim.near_nodes;
  if (near.empty()) near = NodesOf(topology, AffinityCpus());
  const NumaPlan plan = PlanNuma(topology, bytes.size(), near, claim.most_share);
  for (const NumaShare& share : plan.shares) {
    const int error = PreferNode(bytes.data() + share.offset, share.bytes, share.node);
    if (error == 0) continue;
    return fmt::format("placed by the system; {} was refused: {}", Describe(plan), std::strerror(error));
  }
  return Describe(plan);
}

Status Pin(std::span<std::byte> bytes) {
  if (mlock(bytes.data(), bytes.size()) == 0) return OkStatus();
  const int error = errno;
  rlimit limit{};
  CACHALOT_CHECK(getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
  return PinRefused(bytes.size(), limit.rlim_cur, error);
}

}  // namespace

Status CheckClaim(const HostClaim& claim, const MemoryInfo& memory) {
  if (claim.bytes == 0) return Invalid("host memory: asked for 0 bytes");
  const double most = static_cast<double>(memory.available_bytes) * claim.most_share;
  if (static_cast<double>(claim.bytes) <= most) return OkStatus();
  return Unavailable(fmt::format("host memory: asked for {}, available {}{}, of which at most {} % are claimed",
                                 FormatBytes(claim.bytes), FormatBytes(memory.available_bytes),
                                 memory.limited_by_cgroup ? " in this control group" : "", 100 * claim.most_share));
}

Status PinRefused(uint64_t bytes, uint64_t limit_bytes, int error) {
  const std::string limit =
      limit_bytes >= bytes ? "" : fmt::format(" (RLIMIT_MEMLOCK is {}; see ulimit -l)", FormatBytes(limit_bytes));
  return Unavailable(fmt::format("host memory: cannot pin {}{}: {}", FormatBytes(bytes), limit, std::strerror(error)));
}

Result<HostArena> HostArena::Claim(const HostClaim& claim, const MemoryInfo& memory, const NumaTopology& topology) {
  CACHALOT_RETURN_IF_ERROR(CheckClaim(claim, memory));
  void* const pages = mmap(nullptr, claim.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) {
    const int error = errno;
    return Unavailable(fmt::format("host memory: asked for {}, available {}: {}", FormatBytes(claim.bytes),
                                   FormatBytes(memory.available_bytes), std::strerror(error)));
  }
  HostArena arena({static_cast<std::byte*>(pages), claim.bytes});
  (void)madvise(pages, claim.bytes, MADV_HUGEPAGE);  // a wish: fewer misses of the address cache; refused harmlessly
  arena.placement_ = Place(arena.bytes_, claim, topology);
  if (claim.pin) CACHALOT_RETURN_IF_ERROR(Pin(arena.bytes_));
  std::memset(pages, 0, claim.bytes);
  return arena;
}

HostArena::~HostArena() {
  if (!bytes_.empty()) CACHALOT_CHECK(munmap(bytes_.data(), bytes_.size()) == 0);
}

}  // namespace cachalot::tier
