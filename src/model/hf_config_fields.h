// HfFields reads the members of a config.json, by any of the names that architectures gave them.
// Threads:   one.
// Ownership: borrows the object that it reads.
// Invariant: a number that is out of range, of another type or missing is an error that names file and key.
// Cost:      linear in the members, per look-up.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace cachalot::model {

class HfFields {
 public:
  using Keys = std::initializer_list<std::string_view>;

  HfFields(const Json& object, std::string name) : object_(object), name_(std::move(name)) {}

  Status Error(std::string_view key, const std::string& what) const;
  // Null when absent or null.
  const Json* Find(Keys keys) const;

  // An integer from 1 to `max`. Without a fallback, one of the keys must be there.
  Result<uint64_t> Size(Keys keys, uint64_t max, std::optional<uint64_t> fallback = {}) const;
  // An integer from 0 to `max`; 0 where absent.
  Result<uint64_t> Count(Keys keys, uint64_t max) const;
  Result<bool> Flag(std::string_view key, bool fallback) const;
  // Empty where absent.
  Result<std::string> Text(std::string_view key) const;
  // One value per layer. Empty where absent.
  Result<std::vector<std::string>> Texts(Keys keys, uint64_t layers) const;
  Result<std::vector<int64_t>> Integers(Keys keys, uint64_t most) const;

  // As if they had been looked for.
  void Touch(Keys keys) const { read_.insert(keys.begin(), keys.end()); }
  // Of the keys, and then of all whose names have one of the parts, those that are there and were never looked for.
  // kInvalid for a number below 0, which none of them may be.
  Result<std::vector<std::string>> NotRead(Keys keys, Keys parts) const;

 private:
  std::string_view KeyOf(Keys keys) const;
  Result<uint64_t> Bounded(Keys keys, uint64_t min, uint64_t max) const;

  const Json& object_;
  const std::string name_;
  mutable std::set<std::string, std::less<>> read_;  // keys that were looked for
};

}  // namespace cachalot::model
