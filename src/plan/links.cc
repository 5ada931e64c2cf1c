#include "plan/links.h"

#include <algorithm>

namespace cachalot::plan {
namespace {

constexpr double kGB = 1e9;  // per second
constexpr double kUs = 1e-6;

constexpr LinkKind kDevice = LinkKind::kDevice;
constexpr LinkKind kHost = LinkKind::kHost;
constexpr LinkKind kDisk = LinkKind::kDisk;
constexpr LinkKind kNetwork = LinkKind::kNetwork;

constexpr Link kLinks[] = {
    {"nvlink2", "NVLink 2, six links", kDevice, 150 * kGB, 3 * kUs, "V100 datasheet: 300 GB/s both ways"},
    {"nvlink3", "NVLink 3, twelve links", kDevice, 300 * kGB, 3 * kUs, "A100 datasheet: 600 GB/s both ways"},
    {"nvlink4", "NVLink 4, eighteen links", kDevice, 450 * kGB, 3 * kUs, "H100 datasheet: 900 GB/s both ways"},
    {"nvlink5", "NVLink 5, eighteen links", kDevice, 900 * kGB, 3 * kUs, "B200 datasheet: 1,800 GB/s both ways"},
    {"infinity-fabric", "Infinity Fabric, seven links", kDevice, 448 * kGB, 3 * kUs,
     "MI300X datasheet: 896 GB/s both ways"},
    {"ici-v5e", "TPU v5e interconnect", kDevice, 200 * kGB, 3 * kUs, "Cloud TPU documentation: 1,600 Gbit/s"},
    {"ici-v5p", "TPU v5p interconnect", kDevice, 600 * kGB, 3 * kUs, "Cloud TPU documentation: 4,800 Gbit/s"},
    {"nvlink-c2c", "NVLink-C2C to Grace", kHost, 450 * kGB, 3 * kUs, "GB200 datasheet: 900 GB/s both ways"},
    {"pcie3", "PCIe 3.0 x16", kHost, 16 * kGB, 10 * kUs, "8 GT/s on 16 lanes"},
    {"pcie4", "PCIe 4.0 x16", kHost, 32 * kGB, 10 * kUs, "16 GT/s on 16 lanes"},
    {"pcie5", "PCIe 5.0 x16", kHost, 64 * kGB, 10 * kUs, "32 GT/s on 16 lanes"},
    {"pcie6", "PCIe 6.0 x16", kHost, 128 * kGB, 10 * kUs, "64 GT/s on 16 lanes"},
    {"nvme-gen3", "NVMe disk on PCIe 3.0 x4", kDisk, 3.5 * kGB, 100 * kUs, "usual sequential read"},
    {"nvme-gen4", "NVMe disk on PCIe 4.0 x4", kDisk, 7 * kGB, 100 * kUs, "usual sequential read"},
    {"nvme-gen5", "NVMe disk on PCIe 5.0 x4", kDisk, 14 * kGB, 100 * kUs, "usual sequential read"},
    {"sata-ssd", "SATA SSD", kDisk, 0.55 * kGB, 200 * kUs, "6 Gbit/s, usual sequential read"},
    {"hdd", "Hard disk", kDisk, 0.2 * kGB, 10'000 * kUs, "usual sequential read and seek"},
    {"infiniband-hdr", "InfiniBand HDR", kNetwork, 25 * kGB, 5 * kUs, "200 Gbit/s"},
    {"infiniband-ndr", "InfiniBand NDR", kNetwork, 50 * kGB, 5 * kUs, "400 Gbit/s"},
    {"ethernet-1g", "Ethernet 1 Gbit/s", kNetwork, 0.125 * kGB, 50 * kUs, "1 Gbit/s, TCP"},
    {"ethernet-10g", "Ethernet 10 Gbit/s", kNetwork, 1.25 * kGB, 50 * kUs, "10 Gbit/s, TCP"},
    {"ethernet-25g", "Ethernet 25 Gbit/s", kNetwork, 3.125 * kGB, 50 * kUs, "25 Gbit/s, TCP"},
    {"ethernet-100g", "Ethernet 100 Gbit/s", kNetwork, 12.5 * kGB, 10 * kUs, "100 Gbit/s, RDMA"},
    {"ethernet-200g", "Ethernet 200 Gbit/s", kNetwork, 25 * kGB, 10 * kUs, "200 Gbit/s, RDMA"},
    {"internet", "Internet, 1 Gbit/s over 20 ms", kNetwork, 0.125 * kGB, 20'000 * kUs, "a good line between regions"},
};

}  // namespace

std::span<const Link> Links() { return kLinks; }

const Link* FindLink(std::string_view name) {
  const auto found = std::ranges::find(kLinks, name, &Link::name);
  return found == std::end(kLinks) ? nullptr : found;
}

std::vector<Link> LinksOf(const Device& device) {
  std::vector<Link> links;
  for (const Link& link : kLinks) {
    const bool own = link.name == device.peer_link || link.name == device.host_link;
    if (own || link.kind == LinkKind::kDisk || link.kind == LinkKind::kNetwork) links.push_back(link);
  }
  return links;
}

TierRate UsableRate(const Link& link, double share) {
  return {.latency_seconds = link.latency_seconds, .bytes_per_second = link.bytes_per_second * share};
}

}  // namespace cachalot::plan
