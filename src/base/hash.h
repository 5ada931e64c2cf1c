// SHA-256 for what leaves the process (fingerprints, block keys); Hash64 for tables inside it.
// Threads:   one Sha256 belongs to one thread; Hash64 is pure.
// Ownership: none.
// Invariant: Sha256 equals FIPS 180-4.
// Cost:      SHA-256 at the speed of OpenSSL; Hash64 is XXH3.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace cachalot {

using Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void Update(std::span<const std::byte> bytes);
  void Update(std::string_view bytes);
  // Length-prefixed: two different lists of fields never feed the same bytes.
  void UpdateField(std::string_view field);
  void UpdateField(std::span<const std::byte> field);
  void UpdateInt(uint64_t value);
  // Ends the digest; no call may follow.
  Digest Finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Digest Sha256Of(std::span<const std::byte> bytes);
std::string HexOf(std::span<const uint8_t> bytes);
uint64_t Hash64(std::string_view bytes, uint64_t seed = 0);
uint64_t Hash64(std::span<const std::byte> bytes, uint64_t seed = 0);

}  // namespace cachalot
