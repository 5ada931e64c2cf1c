#include "sim/sim_tiers.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "sim/sim_disk.h"
#include "sim/sim_transfers.h"
#include "tier/disk_tier.h"

namespace cachalot::sim {
namespace {

constexpr uint64_t kMostHostBytes = uint64_t{1} << 45;  // a quarter of what a process can address
constexpr uint64_t kMostDiskBytes = uint64_t{1} << 60;

uint64_t BlockBytes(const KvLayout& layout) { return layout.groups.size() * layout.slot_bytes; }

tier::HostTierOptions HostOptions(const SimTierOptions& options, const KvLayout& layout) {
  return {layout.slot_bytes, static_cast<uint32_t>(layout.groups.size()), options.host_eviction};
}

// Of memory that holds so many cells beside their tables.
uint64_t BytesForCells(uint32_t cells, const tier::HostTierOptions& options) {
  uint64_t fewer = 0, enough = cells * options.slot_bytes;
  while (tier::HostTier::CellsFor(enough, options) < cells) fewer = std::exchange(enough, 2 * enough);
  while (enough - fewer > 1) {
    const uint64_t middle = fewer + (enough - fewer) / 2;
    (tier::HostTier::CellsFor(middle, options) < cells ? fewer : enough) = middle;
  }
  return enough;
}

tier::DiskTierOptions DiskOptions(const SimTierOptions& options, const KvLayout& layout) {
  tier::DiskTierOptions disk;
  disk.limit_bytes = options.disk_blocks * layout.slot_bytes;
  return disk;
}

void CheckRate(const char* name, double bytes_per_second, double latency, std::vector<std::string>* problems) {
  constexpr double kFastest = 1e15, kLongest = 1e6;
  if (bytes_per_second > 0 && bytes_per_second <= kFastest && latency >= 0 && latency <= kLongest) return;
  problems->push_back(
      fmt::format("{} of {} bytes/s after {} s; expected more than 0 up to 1e15 bytes/s after 0 to "
                  "1000000 s",
                  name, bytes_per_second, latency));
}

}  // namespace

std::vector<std::string> Problems(const SimTierOptions& options, const KvLayout& layout) {
  std::vector<std::string> problems;
  if (options.link) {
    CheckRate("a link", options.link->bytes_per_second, ToSeconds(options.link->latency), &problems);
  }
  CheckRate("disk reads", options.disk_read.bytes_per_second, options.disk_read.latency_seconds, &problems);
  CheckRate("disk writes", options.disk_write.bytes_per_second, options.disk_write.latency_seconds, &problems);
  const auto names = tier::CellEvictionNames();
  if (std::ranges::find(names, options.host_eviction) == names.end()) {
    problems.push_back(
        fmt::format("host eviction is \"{}\"; expected {}", options.host_eviction, fmt::join(names, " or ")));
  }
  if (options.host_blocks > kMostHostBytes / layout.slot_bytes) {
    problems.push_back(fmt::format("{} blocks of {} in host memory; expected at most {}", options.host_blocks,
                                   FormatBytes(layout.slot_bytes), FormatBytes(kMostHostBytes)));
  }
  if (options.disk_blocks == 0) return problems;
  // Room for a few records in each of the disk's segments.
  constexpr uint64_t kLeastRecords = 4;
  const uint64_t least = kLeastRecords * (tier::ToPages(BlockBytes(layout)) + tier::kDiskPage);
  if (options.disk_blocks > kMostDiskBytes / layout.slot_bytes ||
      tier::SegmentBytes(DiskOptions(options, layout)) < least) {
    problems.push_back(fmt::format(
        "{} blocks of {} on disk; expected {} in each of 8 files at least, {} in all at most", options.disk_blocks,
        FormatBytes(layout.slot_bytes), FormatBytes(least), FormatBytes(kMostDiskBytes)));
  }
  return problems;
}

Result<std::unique_ptr<SimTiers>> SimTiers::Make(const SimTierOptions& options, const KvLayout& layout, Clock& clock) {
  std::unique_ptr<SimTiers> tiers(new SimTiers);
  if (options.host_blocks > 0) CACHALOT_RETURN_IF_ERROR(tiers->MakeHost(options, layout));
  if (options.disk_blocks > 0) CACHALOT_RETURN_IF_ERROR(tiers->MakeStore(options, layout, clock));
  return tiers;
}

Status SimTiers::MakeHost(const SimTierOptions& options, const KvLayout& layout) {
  const tier::HostTierOptions host = HostOptions(options, layout);
  CACHALOT_ASSIGN_OR_RETURN(host_memory_, AddressRange::Reserve(BytesForCells(options.host_blocks, host)));
  CACHALOT_ASSIGN_OR_RETURN(host_, tier::HostTier::Make(host_memory_.bytes(), host));
  return OkStatus();
}

// Its speed is known as if it had been measured before.
Status SimTiers::MakeStore(const SimTierOptions& options, const KvLayout& layout, Clock& clock) {
  const std::array<TierRate, kDirectionNames.size()> rates = {options.disk_read, options.disk_write};
  TierRateTable measured;
  for (size_t direction = 0; direction < rates.size(); ++direction) {
    measured[TierIndex(TierId::kDisk)][direction] = rates[direction];
  }
  const auto make = [&](std::span<std::byte> staging, const tier::TransferOptions& transfers) {
    return Result<std::unique_ptr<tier::TransferEngine>>(
        std::make_unique<SimTransfers>(staging, transfers, rates, clock));
  };
  CACHALOT_ASSIGN_OR_RETURN(store_, tier::DiskStore::Over(std::make_unique<SimDisk>(DiskOptions(options, layout)),
                                                          clock, BlockBytes(layout), make, measured));
  return OkStatus();
}

}  // namespace cachalot::sim
