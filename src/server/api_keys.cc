#include "server/api_keys.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/trimmed.h"
#include "server/cache_salt.h"

namespace cachalot::server {
namespace {

constexpr size_t kMaxNameBytes = 128;
constexpr uint64_t kMaxWeight = 1000;
constexpr uint64_t kMaxCap = 1'000'000'000'000;

// Cuts off what stands before the next blanks, and those.
std::string_view NextItem(std::string_view* line) {
  const std::string_view item = line->substr(0, line->find_first_of(kBlanks));
  *line = Trimmed(line->substr(item.size()));
  return item;
}

std::optional<Digest> DigestOf(std::string_view hex) {
  Digest digest{};
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  for (size_t i = 0; i < digest.size(); ++i) {
    const int high = HexValue(hex[2 * i]), low = HexValue(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return digest;
}

bool IsName(std::string_view name) {
  return name.size() <= kMaxNameBytes && std::ranges::all_of(name, [](char c) { return c > 0x20 && c < 0x7F; });
}

Digest HashOf(std::string_view key) { return Sha256Of(std::as_bytes(std::span(key))); }

// Looks at every byte, whatever the first ones are.
bool Equal(const Digest& a, const Digest& b) {
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

std::optional<Digest> SentHash(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";  // the names of schemes have no case (RFC 9110, section 11.1)
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  const std::string_view scheme = authorization.substr(0, kScheme.size());
  if (!std::ranges::equal(scheme, kScheme, same)) return std::nullopt;
  return HashOf(authorization.substr(kScheme.size()));
}

}  // namespace

Result<ApiKeys> ApiKeys::Parse(std::string_view text, const std::string& file, const TenantTerms& terms) {
  ApiKeys out(terms);
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    const Status status = out.ParseLine(line, number);
    if (!status.ok()) return Invalid(fmt::format("{}:{}: {}", file, number, status.message()));
  }
  if (out.keys_.empty()) return Invalid(fmt::format("{}: has no key; nobody could use the server", file));
  return out;
}

Status ApiKeys::ParseLine(std::string_view line, size_t number) {
  const std::string_view name = NextItem(&line);
  if (line.empty()) return Invalid("expected a tenant's name and the SHA-256 of its key");
  if (!IsName(name)) {
    return Invalid(fmt::format("a tenant's name is at most {} printable ASCII characters", kMaxNameBytes));
  }
  const std::string_view hex = NextItem(&line);
  const std::optional<Digest> hash = DigestOf(hex);
  if (!hash) {
    return Invalid(
        fmt::format("after the name {} come {} characters; expected the SHA-256 of the key, 64 hexadecimal digits",
                    name, hex.size()));
  }
  const auto same = std::ranges::find(keys_, *hash, &Key::hash);
  if (same != keys_.end()) return Invalid(fmt::format("the key of line {} once more", same->line));
  const TenantId id = TenantOf(name);
  keys_.push_back({*hash, id, number});
  for (size_t place = 1; !line.empty(); ++place) {
    CACHALOT_RETURN_IF_ERROR(ParseTerm(NextItem(&line), place, number, &tenants_[id.value]));
  }
  return OkStatus();
}

TenantId ApiKeys::TenantOf(std::string_view name) {
  const auto found = std::ranges::find(tenants_, name, &Tenant::name);
  const TenantId id(static_cast<uint32_t>(found - tenants_.begin()));
  if (found == tenants_.end()) tenants_.push_back({std::string(name), TenantSalt(name), terms_, {}});
  return id;
}

// Nothing of the item is repeated but a name that we know.
Status ApiKeys::ParseTerm(std::string_view item, size_t place, size_t line, Tenant* tenant) {
  const size_t sign = std::min(item.find('='), item.size());
  const std::string_view wanted = item.substr(0, sign), digits = item.substr(std::min(sign + 1, item.size()));
  std::string names = "weight";
  uint64_t* cap = nullptr;
  tenant->terms.Visit([&](std::string_view name, uint64_t& value, std::string_view) {
    names += fmt::format(", {}", name);
    if (name == wanted) cap = &value;
  });
  if (sign == item.size() || (cap == nullptr && wanted != "weight")) {
    return Invalid(fmt::format("item {} after the hash is not NAME=NUMBER with one of the names {}", place, names));
  }
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const uint64_t least = cap == nullptr ? 1 : 0, most = cap == nullptr ? kMaxWeight : kMaxCap;
  if (error != std::errc() || end != digits.data() + digits.size() || number < least || number > most) {
    return Invalid(fmt::format("{} is not a whole number from {} to {}", wanted, least, most));
  }
  const auto said = std::ranges::find(tenant->said, wanted, &Said::term);
  if (said != tenant->said.end()) {
    return Invalid(fmt::format("the {} of {} stands in line {} already", wanted, tenant->name, said->line));
  }
  tenant->said.push_back({std::string(wanted), line});
  if (cap == nullptr) {
    tenant->terms.weight = static_cast<uint32_t>(number);
  } else {
    *cap = number;
  }
  return OkStatus();
}

void ApiKeys::AddSingle(std::string_view key) {
  if (key.empty()) return;
  keys_.push_back({.hash = HashOf(key), .tenant = TenantId(static_cast<uint32_t>(tenants_.size()))});
  tenants_.push_back({.terms = terms_});
}

std::string ApiKeys::NameOf(TenantId tenant) const {
  return tenant.value < tenants_.size() ? tenants_[tenant.value].name : std::string();
}

const TenantTerms& ApiKeys::TermsOf(TenantId tenant) const {
  return tenant.value < tenants_.size() ? tenants_[tenant.value].terms : terms_;
}

std::vector<TenantTerms> ApiKeys::AllTerms() const {
  std::vector<TenantTerms> all;
  for (const Tenant& tenant : tenants_) all.push_back(tenant.terms);
  return all;
}

void ApiKeys::SetAdmin(std::string_view key) {
  if (!key.empty()) admin_ = HashOf(key);
}

std::optional<Sender> ApiKeys::SenderOf(std::string_view authorization) const {
  if (keys_.empty()) return Sender{};
  const std::optional<Digest> sent = SentHash(authorization);
  if (!sent) return std::nullopt;
  const Key* found = nullptr;
  for (const Key& key : keys_) {
    if (Equal(key.hash, *sent)) found = &key;
  }
  if (found == nullptr) return std::nullopt;
  return Sender{tenants_[found->tenant.value].salt, found->tenant};
}

bool ApiKeys::IsAdmin(std::string_view authorization) const {
  const std::optional<Digest> sent = SentHash(authorization);
  return sent && admin_ && Equal(*sent, *admin_);
}

std::optional<CacheSalt> ApiKeys::SaltOfTenant(std::string_view tenant) const {
  const auto found = std::ranges::find(tenants_, tenant, &Tenant::name);
  if (tenant.empty() || found == tenants_.end()) return std::nullopt;
  return found->salt;
}

}  // namespace cachalot::server
