// AddressRange is a stretch of addresses that costs memory only where it was written: for tables over bytes that a
// simulation never touches.
// Threads:   any.
// Ownership: owns the addresses.
// Invariant: begins at a page; reads as zeros until written.
// Cost:      one system call; a page of memory per page written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/status.h"

namespace cachalot::sim {

class AddressRange {
 public:
  AddressRange() = default;
  // kUnavailable when the system does not give so many.
  static Result<AddressRange> Reserve(uint64_t bytes);

  AddressRange(AddressRange&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  AddressRange& operator=(AddressRange&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~AddressRange();

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  explicit AddressRange(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes_;
};

}  // namespace cachalot::sim
