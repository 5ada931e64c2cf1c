#include "plan/devices.h"

#include <algorithm>

#include <fmt/format.h>

namespace cachalot::plan {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr double kGB = 1e9;  // per second
constexpr double kT = 1e12;

// Memory is what the driver reports, in whole GiB, or what the sheet calls GB where that is the same.
constexpr Device kDevices[] = {
    {"v100", "NVIDIA V100 SXM2 32 GB", 32 * kGiB, 900 * kGB, 125 * kT, 0, "nvlink2", "pcie3", "NVIDIA V100 datasheet"},
    {"t4", "NVIDIA T4", 16 * kGiB, 320 * kGB, 65 * kT, 130 * kT, "pcie3", "pcie3", "NVIDIA T4 datasheet"},
    {"a10", "NVIDIA A10", 24 * kGiB, 600 * kGB, 125 * kT, 250 * kT, "pcie4", "pcie4", "NVIDIA A10 datasheet"},
    {"a30", "NVIDIA A30", 24 * kGiB, 933 * kGB, 165 * kT, 330 * kT, "pcie4", "pcie4", "NVIDIA A30 datasheet"},
    {"a100-40", "NVIDIA A100 SXM 40 GB", 40 * kGiB, 1555 * kGB, 312 * kT, 624 * kT, "nvlink3", "pcie4",
     "NVIDIA A100 datasheet"},
    {"a100", "NVIDIA A100 SXM 80 GB", 80 * kGiB, 2039 * kGB, 312 * kT, 624 * kT, "nvlink3", "pcie4",
     "NVIDIA A100 datasheet"},
    {"a100-pcie", "NVIDIA A100 PCIe 80 GB", 80 * kGiB, 1935 * kGB, 312 * kT, 624 * kT, "pcie4", "pcie4",
     "NVIDIA A100 datasheet"},
    {"l4", "NVIDIA L4", 24 * kGiB, 300 * kGB, 121 * kT, 242 * kT, "pcie4", "pcie4", "NVIDIA L4 datasheet"},
    {"l40s", "NVIDIA L40S", 48 * kGiB, 864 * kGB, 362 * kT, 733 * kT, "pcie4", "pcie4", "NVIDIA L40S datasheet"},
    {"h100", "NVIDIA H100 SXM 80 GB", 80 * kGiB, 3350 * kGB, 989 * kT, 1979 * kT, "nvlink4", "pcie5",
     "NVIDIA H100 datasheet"},
    {"h100-pcie", "NVIDIA H100 PCIe 80 GB", 80 * kGiB, 2000 * kGB, 756 * kT, 1513 * kT, "pcie5", "pcie5",
     "NVIDIA H100 datasheet"},
    {"h100-nvl", "NVIDIA H100 NVL 94 GB", 93 * kGiB, 3900 * kGB, 835 * kT, 1671 * kT, "pcie5", "pcie5",
     "NVIDIA H100 datasheet"},
    {"h200", "NVIDIA H200 SXM 141 GB", 140 * kGiB, 4800 * kGB, 989 * kT, 1979 * kT, "nvlink4", "pcie5",
     "NVIDIA H200 datasheet"},
    {"b200", "NVIDIA B200 (HGX) 180 GB", 179 * kGiB, 7700 * kGB, 2250 * kT, 4500 * kT, "nvlink5", "pcie6",
     "NVIDIA HGX B200 datasheet"},
    {"b300", "NVIDIA B300 (HGX)", 268 * kGiB, 7750 * kGB, 2250 * kT, 4500 * kT, "nvlink5", "pcie6",
     "NVIDIA HGX B300 datasheet"},
    {"gb200", "NVIDIA GB200, one GPU", 185 * kGiB, 8000 * kGB, 2500 * kT, 5000 * kT, "nvlink5", "nvlink-c2c",
     "NVIDIA GB200 NVL72 datasheet"},
    {"rtx-3090", "NVIDIA GeForce RTX 3090", 24 * kGiB, 936 * kGB, 71 * kT, 284 * kT, "pcie4", "pcie4",
     "NVIDIA Ampere GA102 whitepaper"},
    {"rtx-4090", "NVIDIA GeForce RTX 4090", 24 * kGiB, 1008 * kGB, 165.2 * kT, 330.3 * kT, "pcie4", "pcie4",
     "NVIDIA Ada whitepaper"},
    {"rtx-5090", "NVIDIA GeForce RTX 5090", 32 * kGiB, 1792 * kGB, 209.5 * kT, 419 * kT, "pcie5", "pcie5",
     "NVIDIA RTX Blackwell whitepaper"},
    {"rtx-6000-ada", "NVIDIA RTX 6000 Ada", 48 * kGiB, 960 * kGB, 364.2 * kT, 728.5 * kT, "pcie4", "pcie4",
     "NVIDIA RTX 6000 Ada datasheet"},
    {"mi250x", "AMD Instinct MI250X", 128 * kGiB, 3277 * kGB, 383 * kT, 383 * kT, "pcie4", "pcie4",
     "AMD MI250X datasheet"},
    {"mi300x", "AMD Instinct MI300X", 192 * kGiB, 5300 * kGB, 1307.4 * kT, 2614.9 * kT, "infinity-fabric", "pcie5",
     "AMD MI300X datasheet"},
    {"mi325x", "AMD Instinct MI325X", 256 * kGiB, 6000 * kGB, 1307.4 * kT, 2614.9 * kT, "infinity-fabric", "pcie5",
     "AMD MI325X datasheet"},
    {"gaudi2", "Intel Gaudi 2", 96 * kGiB, 2450 * kGB, 432 * kT, 865 * kT, "ethernet-100g", "pcie4",
     "Intel Gaudi 2 whitepaper"},
    {"gaudi3", "Intel Gaudi 3", 128 * kGiB, 3700 * kGB, 1835 * kT, 1835 * kT, "ethernet-200g", "pcie5",
     "Intel Gaudi 3 whitepaper"},
    {"tpu-v5e", "Google TPU v5e", 16 * kGiB, 819 * kGB, 197 * kT, 394 * kT, "ici-v5e", "pcie4",
     "Google Cloud TPU documentation"},
    {"tpu-v5p", "Google TPU v5p", 95 * kGiB, 2765 * kGB, 459 * kT, 918 * kT, "ici-v5p", "pcie4",
     "Google Cloud TPU documentation"},
    {"m1-ultra", "Apple M1 Ultra 128 GB", 128 * kGiB, 800 * kGB, 21 * kT, 0, "ethernet-10g", "",
     "Apple press release of March 2022; 16-bit arithmetic taken as its 32-bit"},
    {"epyc-9654", "AMD EPYC 9654, one socket with 768 GiB", 768 * kGiB, 460.8 * kGB, 7.4 * kT, 14.7 * kT,
     "ethernet-25g", "",
     "AMD EPYC 9004 datasheet: 12 channels DDR5-4800; 96 cores at 2.4 GHz, 32 FMA lanes' f32 operations a cycle"},
};

}  // namespace

std::span<const Device> Devices() { return kDevices; }

const Device* FindDevice(std::string_view name) {
  const auto found = std::ranges::find(kDevices, name, &Device::name);
  return found == std::end(kDevices) ? nullptr : found;
}

std::string DeviceNames() {
  std::string names;
  for (const Device& device : kDevices) names += fmt::format("{}{}", names.empty() ? "" : ", ", device.name);
  return names;
}

}  // namespace cachalot::plan
