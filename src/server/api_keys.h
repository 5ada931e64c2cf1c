// ApiKeys says who a client is by the key that it sends: the tenants of a key file, the single key, the admin's.
// Threads:   immutable once set up.
// Ownership: keeps digests of keys, no key.
// Invariant: the time that a look-up takes does not depend on the keys, only on how many there are. No message repeats
//            what a file has in the place of a hash, which may be a key by mistake.
// Cost:      a look-up is one SHA-256 of the key sent and one comparison of 32 bytes per key.
//
// The file has one key per line: the tenant's name, white space, and the SHA-256 of the key in 64 hexadecimal digits,
// as `printf %s KEY | sha256sum` prints it. A tenant may have several keys. Empty lines and lines that begin with # are
// skipped.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/prefix_scope.h"
#include "base/status.h"

namespace cachalot::server {

class ApiKeys {
 public:
  // Whose requests come without a key, as none is asked for.
  ApiKeys() = default;
  // kInvalid names `file`, the line and what is expected.
  static Result<ApiKeys> Parse(std::string_view text, const std::string& file);

  // One key more, whose holder has no salt of its own. An empty key adds none.
  void AddSingle(std::string_view key);
  // The key of the administration; empty: there is none.
  void SetAdmin(std::string_view key);

  // Clients must send a key.
  bool required() const { return !keys_.empty(); }
  bool has_admin() const { return admin_.has_value(); }

  // The salt of the sender by the value of its Authorization header; null when its key is none of these.
  std::optional<CacheSalt> SaltOf(std::string_view authorization) const;
  bool IsAdmin(std::string_view authorization) const;
  // The salt of a tenant of the file.
  std::optional<CacheSalt> SaltOfTenant(std::string_view tenant) const;

 private:
  struct Key {
    Digest hash{};
    std::string tenant;  // empty: of the single key
    CacheSalt salt;
    size_t line = 0;
  };
  std::vector<Key> keys_;
  std::optional<Digest> admin_;
};

}  // namespace cachalot::server
