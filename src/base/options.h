// Options are structs that declare each setting once, by a Visit(f) template that calls f(name, field, help); this
// header dumps them.
//   struct CacheOptions {
//     uint32_t block_tokens = 16;
//     template <class F> void Visit(F&& f) { f("block-tokens", block_tokens, "Tokens per KV block."); }
//   };
// Threads:   pure functions of their arguments.
// Ownership: none.
// Invariant: what is dumped is what the struct holds, in the order of its declaration.
// Cost:      linear in the number of settings.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/json.h"
#include "base/units.h"

namespace cachalot {

inline Json OptionValue(bool value) { return value; }
inline Json OptionValue(const std::string& value) { return value; }
inline Json OptionValue(ByteSize value) { return FormatBytes(value.bytes); }
inline Json OptionValue(std::floating_point auto value) { return static_cast<double>(value); }

// Past int64 the value becomes a double, as when JSON is read.
template <std::integral T>
Json OptionValue(T value) {
  const auto integer = static_cast<int64_t>(value);
  if (std::is_unsigned_v<T> && integer < 0) return static_cast<double>(value);
  return integer;
}

template <class T>
Json OptionValue(const std::optional<T>& value) {
  return value ? OptionValue(*value) : Json();
}

// {"block-tokens":16,...}. Taken by value: Visit() hands out mutable fields.
template <class Options>
Json OptionsAsJson(Options options) {
  Json::Object members;
  options.Visit([&](std::string_view name, const auto& value, std::string_view) {
    members.emplace_back(std::string(name), OptionValue(value));
  });
  return members;
}

}  // namespace cachalot
