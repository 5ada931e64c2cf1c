// ApiKeys says who a client is by the key that it sends: the tenants of a key file, the single key, the admin's.
// Threads:   immutable once set up.
// Ownership: keeps digests of keys, no key.
// Invariant: the time that a look-up takes does not depend on the keys, only on how many there are. No message repeats
//            what a file has in the place of a hash, which may be a key by mistake.
// Cost:      a look-up is one SHA-256 of the key sent and one comparison of 32 bytes per key.
//
// The file has one key per line: the tenant's name, white space, and the SHA-256 of the key in 64 hexadecimal digits,
// as `printf %s KEY | sha256sum` prints it. A tenant may have several keys. Then may follow its terms, each once, as
// NAME=NUMBER: weight, and the names of TenantTerms. Empty lines and lines that begin with # are skipped.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/prefix_scope.h"
#include "base/status.h"
#include "base/tenant.h"

namespace cachalot::server {

struct Sender {
  CacheSalt salt;
  TenantId tenant;
  bool admin = false;  // the administration, which is no tenant
};

class ApiKeys {
 public:
  // Whose requests come without a key, as none is asked for. `terms` are everybody's, but for what a file names.
  ApiKeys() = default;
  explicit ApiKeys(const TenantTerms& terms) : terms_(terms) {}
  // kInvalid names `file`, the line and what is expected.
  static Result<ApiKeys> Parse(std::string_view text, const std::string& file, const TenantTerms& terms = {});

  // One key more, whose holder is a tenant without a salt of its own. An empty key adds none.
  void AddSingle(std::string_view key);
  // The key of the administration; empty: there is none.
  void SetAdmin(std::string_view key);

  // Clients must send a key.
  bool required() const { return !keys_.empty(); }
  bool has_admin() const { return admin_.has_value(); }

  // By the value of the Authorization header; null when its key is none of these.
  std::optional<Sender> SenderOf(std::string_view authorization) const;
  bool IsAdmin(std::string_view authorization) const;
  // The salt of a tenant of the file.
  std::optional<CacheSalt> SaltOfTenant(std::string_view tenant) const;
  // Empty for the holder of the single key, and where none is asked for.
  std::string NameOf(TenantId tenant) const;
  const TenantTerms& TermsOf(TenantId tenant) const;
  // By tenant; none without keys.
  std::vector<TenantTerms> AllTerms() const;

 private:
  struct Key {
    Digest hash{};
    TenantId tenant;
    size_t line = 0;
  };
  struct Said {  // that a line named a term
    std::string term;
    size_t line;
  };
  struct Tenant {
    std::string name;  // empty: of the single key
    CacheSalt salt;
    TenantTerms terms;
    std::vector<Said> said;
  };

  Status ParseLine(std::string_view line, size_t number);
  static Status ParseTerm(std::string_view item, size_t place, size_t line, Tenant* tenant);
  TenantId TenantOf(std::string_view name);

  TenantTerms terms_;
  std::vector<Key> keys_;
  std::vector<Tenant> tenants_;  // by id
  std::optional<Digest> admin_;
};

}  // namespace cachalot::server
