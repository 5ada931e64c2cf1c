// HmacSha256 tells whoever has the key that bytes are as they were written (RFC 2104).
// Threads:   one belongs to one thread.
// Ownership: keeps what it derives from the key.
// Invariant: none.
// Cost:      that of SHA-256, and of two more blocks of 64 bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/hash.h"

namespace cachalot {

using MacKey = std::array<uint8_t, 32>;

class HmacSha256 {
 public:
  explicit HmacSha256(const MacKey& key);
  void Update(std::span<const std::byte> bytes) { inner_.Update(bytes); }
  // Ends it; no call may follow.
  Digest Finish();

 private:
  Sha256 inner_, outer_;
};

// In a time that does not depend on where they differ.
bool SameDigest(const Digest& a, const Digest& b);

}  // namespace cachalot
