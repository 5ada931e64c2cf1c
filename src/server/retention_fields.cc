#include "server/retention_fields.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>

namespace cachalot::server {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

void ReadPriority(FieldReader& kv, RetentionHints* hints) {
  constexpr std::array<std::string_view, 3> kNames = {"low", "normal", "high"};
  std::string name = "normal";
  kv.String("priority", &name);
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) {
    return kv.Fail(kv.PathOf("priority"), fmt::format("{} is not one of low, normal and high", Excerpt(name)));
  }
  if (kv.Find("priority") != nullptr) hints->priority = static_cast<RetentionPriority>(found - kNames.begin());
}

void ReadKvObject(FieldReader& reader, const Json& object, RetentionHints* hints) {
  if (object.AsObject() == nullptr) return reader.WrongType("kv", "object", object);
  FieldReader kv(object, "kv");
  for (const auto& [key, value] : *object.AsObject()) {
    constexpr std::array<std::string_view, 8> kKnown = {"priority", "ttl",         "pin",     "scrub",
                                                        "session",  "session_ttl", "returns", "returns_in"};
    if (std::ranges::find(kKnown, key) != kKnown.end()) continue;
    kv.Fail(kv.PathOf(Excerpt(key)), fmt::format("is not known; expected {}", fmt::join(kKnown, ", ")));
  }
  ReadPriority(kv, hints);
  int64_t ttl = 0, pin = 0;
  kv.Int("ttl", 1, kMaxTtlSeconds, &ttl);
  kv.Int("pin", 1, kMaxPinSeconds, &pin);
  kv.Bool("scrub", &hints->scrub);
  if (ttl > 0) hints->ttl = seconds(ttl);
  if (pin > 0) hints->pin = seconds(pin);
  if (hints->pin > hints->ttl) kv.Fail(kv.PathOf("pin"), "is longer than the TTL");
  reader.Adopt(kv.error());
}

}  // namespace

std::optional<RetentionHints> ReadRetention(FieldReader& reader) {
  std::optional<RetentionHints> hints;
  std::string key;
  reader.String("prompt_cache_key", &key);  // equal prefixes are found without it
  std::string named;
  reader.String("prompt_cache_retention", &named);
  if (named == "24h") {
    hints = {.priority = RetentionPriority::kHigh, .ttl = hours(24)};
  } else if (named == "in_memory" || named == "in-memory") {
    hints.emplace();
  } else if (reader.Find("prompt_cache_retention") != nullptr) {
    reader.Fail("prompt_cache_retention", fmt::format("{} is not one of in_memory and 24h", Excerpt(named)));
  }
  if (const Json* kv = reader.Find("kv")) {
    if (!hints) hints.emplace();
    ReadKvObject(reader, *kv, &*hints);
  }
  return hints;
}

}  // namespace cachalot::server
