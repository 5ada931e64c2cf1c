#include "exec/device_memory.h"

#include <cstring>
#include <vector>

namespace cachalot::exec {

Result<bool> DeviceMemory::Same(SlotId a, SlotId b, uint64_t bytes) {
  std::vector<std::byte> one(slot_bytes()), other(slot_bytes());
  CACHALOT_RETURN_IF_ERROR(Wait(CopyOut(a, one)));
  CACHALOT_RETURN_IF_ERROR(Wait(CopyOut(b, other)));
  return std::memcmp(one.data(), other.data(), bytes) == 0;
}

}  // namespace cachalot::exec
