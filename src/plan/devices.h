// The planner's devices: what a datasheet says of memory, bandwidth and arithmetic.
// Threads:   constant data.
// Ownership: static.
// Invariant: names are unique; arithmetic is dense (no sparsity), with f32 accumulation where the sheet tells them
//            apart.
// Cost:      none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cachalot::plan {

struct Device {
  std::string_view name;
  std::string_view title;
  uint64_t memory_bytes = 0;
  double memory_rate = 0;      // bytes per second
  double flops16 = 0;          // per second, 16-bit
  double flops8 = 0;           // 8-bit; 0 where it has none
  std::string_view peer_link;  // to its neighbours (plan/links.h)
  std::string_view host_link;  // to the host's memory; empty where it is the same
  std::string_view source;

  // What computes is the processor that the memory belongs to.
  bool is_host() const { return host_link.empty(); }
};

std::span<const Device> Devices();
// Null when there is none of that name.
const Device* FindDevice(std::string_view name);
std::string DeviceNames();

}  // namespace cachalot::plan
