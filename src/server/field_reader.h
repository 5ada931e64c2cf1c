// FieldReader takes typed fields out of one JSON object and keeps the first thing that is wrong, with its path.
// Threads:   one thread.
// Ownership: borrows the object.
// Invariant: a field that is absent or null leaves its destination as it was; after a failure nothing else is reported.
// Cost:      one look-up per field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "server/api_error.h"

namespace cachalot::server {

class FieldReader {
 public:
  // `path` names the object; empty for the body itself.
  FieldReader(const Json& object, std::string path) : object_(object), path_(std::move(path)) {}

  // Null when absent or null.
  const Json* Find(std::string_view key) const;
  std::string PathOf(std::string_view key) const;

  void Bool(std::string_view key, bool* out);
  void String(std::string_view key, std::string* out);
  // Any finite number; its range is for the caller to check.
  void Float(std::string_view key, float* out);

  template <class T>
  void Int(std::string_view key, int64_t low, int64_t high, T* out) {
    if (const std::optional<int64_t> value = IntIn(key, low, high)) *out = static_cast<T>(*value);
  }

  void Fail(std::string path, std::string problem);
  // "messages[2].content: expected string or array, got integer"
  void WrongType(std::string path, std::string_view expected, const Json& got);
  void Adopt(std::optional<ApiError> error);

  bool ok() const { return !error_.has_value(); }
  const std::optional<ApiError>& error() const { return error_; }

 private:
  std::optional<int64_t> IntIn(std::string_view key, int64_t low, int64_t high);

  const Json& object_;
  const std::string path_;
  std::optional<ApiError> error_;
};

// At most some dozens of bytes of a text from a client, for a message.
std::string Excerpt(std::string_view text);

inline std::string ElementPath(std::string_view array, size_t index) { return fmt::format("{}[{}]", array, index); }

}  // namespace cachalot::server
