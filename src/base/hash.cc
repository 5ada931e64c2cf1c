#include "base/hash.h"

#include <openssl/evp.h>
#include <xxhash.h>

#include "base/check.h"

namespace cachalot {
namespace {

// Looked up once: OpenSSL would do it under locks for every digest, which takes longer than to hash a short text.
const EVP_MD* Algorithm() {
  static const EVP_MD* const sha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return sha256;
}

}  // namespace

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  Context() { CACHALOT_CHECK(evp != nullptr && EVP_DigestInit_ex(evp, Algorithm(), nullptr) == 1); }
  ~Context() { EVP_MD_CTX_free(evp); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::Update(std::span<const std::byte> bytes) {
  CACHALOT_CHECK(context_ != nullptr);
  CACHALOT_CHECK(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1);
}

void Sha256::Update(std::string_view bytes) { Update(std::as_bytes(std::span(bytes))); }

void Sha256::UpdateField(std::string_view field) { UpdateField(std::as_bytes(std::span(field))); }

void Sha256::UpdateField(std::span<const std::byte> field) {
  UpdateInt(field.size());
  Update(field);
}

void Sha256::UpdateInt(uint64_t value) {
  std::array<std::byte, 8> little_endian;
  for (size_t i = 0; i < little_endian.size(); ++i) little_endian[i] = static_cast<std::byte>(value >> (8 * i));
  Update(little_endian);
}

Digest Sha256::Finish() {
  CACHALOT_CHECK(context_ != nullptr);
  Digest digest;
  unsigned written = 0;
  CACHALOT_CHECK(EVP_DigestFinal_ex(context_->evp, digest.data(), &written) == 1 && written == digest.size());
  context_.reset();
  return digest;
}

Digest Sha256Of(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Finish();
}

std::string HexOf(std::span<const uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) {
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

uint64_t Hash64(std::string_view bytes, uint64_t seed) { return Hash64(std::as_bytes(std::span(bytes)), seed); }

uint64_t Hash64(std::span<const std::byte> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace cachalot
