#include "server/api_keys.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "server/cache_salt.h"

namespace cachalot::server {
namespace {

constexpr size_t kMaxNameBytes = 128;
constexpr std::string_view kBlanks = " \t\r";

std::string_view Trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
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

Result<ApiKeys> ApiKeys::Parse(std::string_view text, const std::string& file) {
  ApiKeys out;
  size_t number = 0;
  const auto wrong = [&](std::string_view problem) { return Invalid(fmt::format("{}:{}: {}", file, number, problem)); };
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    const size_t gap = line.find_first_of(kBlanks);
    if (gap == std::string_view::npos) return wrong("expected a tenant's name and the SHA-256 of its key");
    const std::string_view name = line.substr(0, gap), hex = Trimmed(line.substr(gap));
    if (!IsName(name)) {
      return wrong(fmt::format("a tenant's name is at most {} printable ASCII characters", kMaxNameBytes));
    }
    const std::optional<Digest> hash = DigestOf(hex);
    if (!hash) {
      return wrong(
          fmt::format("after the name {} come {} characters; expected the SHA-256 of the key, 64 hexadecimal digits",
                      name, hex.size()));
    }
    const auto same = std::ranges::find(out.keys_, *hash, &Key::hash);
    if (same != out.keys_.end()) return wrong(fmt::format("the key of line {} once more", same->line));
    out.keys_.push_back({*hash, std::string(name), TenantSalt(name), number});
  }
  if (out.keys_.empty()) return Invalid(fmt::format("{}: has no key; nobody could use the server", file));
  return out;
}

void ApiKeys::AddSingle(std::string_view key) {
  if (!key.empty()) keys_.push_back({.hash = HashOf(key), .tenant = {}, .salt = {}});
}

void ApiKeys::SetAdmin(std::string_view key) {
  if (!key.empty()) admin_ = HashOf(key);
}

std::optional<CacheSalt> ApiKeys::SaltOf(std::string_view authorization) const {
  if (keys_.empty()) return CacheSalt{};
  const std::optional<Digest> sent = SentHash(authorization);
  if (!sent) return std::nullopt;
  const Key* found = nullptr;
  for (const Key& key : keys_) {
    if (Equal(key.hash, *sent)) found = &key;
  }
  if (found == nullptr) return std::nullopt;
  return found->salt;
}

bool ApiKeys::IsAdmin(std::string_view authorization) const {
  const std::optional<Digest> sent = SentHash(authorization);
  return sent && admin_ && Equal(*sent, *admin_);
}

std::optional<CacheSalt> ApiKeys::SaltOfTenant(std::string_view tenant) const {
  const auto found = std::ranges::find(keys_, tenant, &Key::tenant);
  if (tenant.empty() || found == keys_.end()) return std::nullopt;
  return found->salt;
}

}  // namespace cachalot::server
