// Arena is a stretch of ordinary memory, claimed from the system and touched at once.
// Threads:   claimed and released by one thread.
// Ownership: owns its pages.
// Invariant: bytes() is slots * slot_bytes; the start is aligned to a page.
// Cost:      Claim writes every page once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace cachalot::exec {

class Arena {
 public:
  // Every byte is `fill`. kInvalid for an empty arena; kUnavailable, with asked and available bytes, for one that the
  // machine or its control group cannot give now.
  static Result<Arena> Claim(uint64_t slot_bytes, uint32_t slots, uint8_t fill);

  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&&) = delete;
  ~Arena();

  std::byte* data() { return data_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t slot_bytes() const { return slot_bytes_; }
  uint32_t slots() const { return static_cast<uint32_t>(bytes_ / slot_bytes_); }
  // Requires slot < slots().
  std::byte* Slot(uint32_t slot);

 private:
  Arena(std::byte* data, uint64_t bytes, uint64_t slot_bytes) : data_(data), bytes_(bytes), slot_bytes_(slot_bytes) {}
  std::byte* data_;
  uint64_t bytes_;
  uint64_t slot_bytes_;
};

}  // namespace cachalot::exec
