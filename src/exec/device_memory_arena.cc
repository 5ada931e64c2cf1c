#include "exec/device_memory_arena.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/memory_info.h"
#include "base/units.h"

namespace cachalot::exec {
namespace {

Status CheckAvailable(uint64_t bytes, uint64_t slot_bytes, uint32_t slots) {
  // Where the system does not tell, the claim itself has to show it.
  const Result<MemoryInfo> memory = ReadMemoryInfo();
  if (!memory.ok() || bytes <= memory->available_bytes) return OkStatus();
  return Unavailable(fmt::format("KV pool: asked for {} ({} slots of {}), available {}{}", FormatBytes(bytes), slots,
                                 FormatBytes(slot_bytes), FormatBytes(memory->available_bytes),
                                 memory->limited_by_cgroup ? " in this control group" : ""));
}

}  // namespace

Result<Arena> Arena::Claim(uint64_t slot_bytes, uint32_t slots, uint8_t fill) {
  if (slot_bytes == 0 || slots == 0) {
    return Invalid(fmt::format("KV pool: {} slots of {} bytes; expected at least one of each", slots, slot_bytes));
  }
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(slot_bytes, uint64_t{slots}, &bytes) ||
      bytes > static_cast<uint64_t>(std::numeric_limits<ptrdiff_t>::max())) {
    return Unavailable(
        fmt::format("KV pool: asked for {} slots of {}, more than any machine has", slots, FormatBytes(slot_bytes)));
  }
  CACHALOT_RETURN_IF_ERROR(CheckAvailable(bytes, slot_bytes, slots));
  void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) {
    const int error = errno;
    const Result<MemoryInfo> memory = ReadMemoryInfo();
    return Unavailable(fmt::format("KV pool: asked for {}, available {}: {}", FormatBytes(bytes),
                                   memory.ok() ? FormatBytes(memory->available_bytes) : "unknown",
                                   std::strerror(error)));
  }
  (void)madvise(pages, bytes, MADV_HUGEPAGE);  // a wish: fewer misses of the address cache; refused harmlessly
  std::memset(pages, fill, bytes);
  return Arena(static_cast<std::byte*>(pages), bytes, slot_bytes);
}

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_), slot_bytes_(other.slot_bytes_) {}

Arena::~Arena() {
  if (data_ != nullptr) CACHALOT_CHECK(munmap(data_, bytes_) == 0);
}

std::byte* Arena::Slot(uint32_t slot) {
  CACHALOT_CHECK(slot < slots());
  return data_ + uint64_t{slot} * slot_bytes_;
}

}  // namespace cachalot::exec
