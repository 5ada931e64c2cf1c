#include "server/cache_salt.h"

#include "base/hash.h"

namespace cachalot::server {
namespace {

CacheSalt Cut(const Digest& digest) {
  CacheSalt salt;
  for (size_t i = 0; i < 8; ++i) {
    salt.high = salt.high << 8 | digest[i];
    salt.low = salt.low << 8 | digest[8 + i];
  }
  return salt;
}

}  // namespace

CacheSalt TenantSalt(std::string_view tenant) {
  Sha256 sha;
  sha.UpdateField("cachalot cache salt of a tenant");
  sha.UpdateField(tenant);
  return Cut(sha.Finish());
}

CacheSalt NarrowedSalt(const CacheSalt& salt, std::string_view cache_salt) {
  Sha256 sha;
  sha.UpdateField("cachalot cache salt of a request");
  sha.UpdateInt(salt.high);
  sha.UpdateInt(salt.low);
  sha.UpdateField(cache_salt);
  return Cut(sha.Finish());
}

}  // namespace cachalot::server
