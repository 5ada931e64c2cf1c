#include "base/hmac.h"

namespace cachalot {
namespace {

constexpr size_t kBlockBytes = 64;  // of SHA-256

Sha256 StartedWith(const MacKey& key, uint8_t pad) {
  std::array<std::byte, kBlockBytes> block;
  for (size_t i = 0; i < block.size(); ++i) block[i] = std::byte((i < key.size() ? key[i] : uint8_t{0}) ^ pad);
  Sha256 hash;
  hash.Update(std::span<const std::byte>(block));
  return hash;
}

}  // namespace

HmacSha256::HmacSha256(const MacKey& key) : inner_(StartedWith(key, 0x36)), outer_(StartedWith(key, 0x5c)) {}

Digest HmacSha256::Finish() {
  const Digest inner = inner_.Finish();
  outer_.Update(std::as_bytes(std::span(inner)));
  return outer_.Finish();
}

bool SameDigest(const Digest& a, const Digest& b) {
  uint8_t differs = 0;
  for (size_t i = 0; i < a.size(); ++i) differs |= a[i] ^ b[i];
  return differs == 0;
}

}  // namespace cachalot
