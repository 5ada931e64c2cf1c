#include "sim/address_range.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/units.h"

namespace cachalot::sim {

Result<AddressRange> AddressRange::Reserve(uint64_t bytes) {
  void* const begin = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) {
    return Unavailable(
        fmt::format("no addresses for {} of simulated memory: {}", FormatBytes(bytes), std::strerror(errno)));
  }
  return AddressRange({static_cast<std::byte*>(begin), bytes});
}

AddressRange::~AddressRange() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

}  // namespace cachalot::sim
