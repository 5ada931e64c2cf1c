// Json is a parsed JSON value; ParseJson reads untrusted text, JsonWriter appends valid JSON to a string.
// Threads:   values are plain data; ParseJson may be called from any thread.
// Ownership: a value owns its children.
// Invariant: nesting is at most kMaxJsonDepth, strings are valid UTF-8, object keys are unique and keep their order.
// Cost:      parsing is linear in the text; Find is linear in the object's members.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"

namespace cachalot {

inline constexpr int kMaxJsonDepth = 128;

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;                                // null
  Json(std::nullptr_t) {}                          // NOLINT: implicit by design, as all below
  Json(bool v) : value_(v) {}                      // NOLINT
  Json(int v) : value_(int64_t{v}) {}              // NOLINT
  Json(int64_t v) : value_(v) {}                   // NOLINT
  Json(double v) : value_(v) {}                    // NOLINT
  Json(const char* v) : value_(std::string(v)) {}  // NOLINT
  Json(std::string v) : value_(std::move(v)) {}    // NOLINT
  Json(Array v) : value_(std::move(v)) {}          // NOLINT
  Json(Object v) : value_(std::move(v)) {}         // NOLINT

  bool is_null() const { return value_.index() == 0; }
  // Null when the value is of another type. Integers outside int64 arrive as doubles.
  const bool* AsBool() const { return std::get_if<bool>(&value_); }
  const int64_t* AsInt() const { return std::get_if<int64_t>(&value_); }
  std::optional<double> AsNumber() const;  // int or double
  const std::string* AsString() const { return std::get_if<std::string>(&value_); }
  const Array* AsArray() const { return std::get_if<Array>(&value_); }
  const Object* AsObject() const { return std::get_if<Object>(&value_); }

  // The member of that name; null when absent or when this is no object.
  const Json* Find(std::string_view key) const;

  // "null", "boolean", "integer", "number", "string", "array" or "object", for messages.
  const char* TypeName() const;

  // Compact text, e.g. {"a":[1,2.5,"x"]}.
  std::string Dump() const;

  bool operator==(const Json&) const = default;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

// kInvalid with the reason for anything that is not one well-formed document: syntax, invalid UTF-8, trailing text,
// duplicate keys, nesting past kMaxJsonDepth.
Result<Json> ParseJson(std::string_view text);

// Appends JSON text; commas are placed by the writer. Strings are escaped, invalid UTF-8 becomes U+FFFD, and
// non-finite numbers become null.
//   JsonWriter w(&out); w.BeginObject(); w.Key("id").Int(7); w.Key("ok").Bool(true); w.EndObject();
class JsonWriter {
 public:
  explicit JsonWriter(std::string* out) : out_(out) {}

  JsonWriter& BeginObject();
  JsonWriter& EndObject();
  JsonWriter& BeginArray();
  JsonWriter& EndArray();
  JsonWriter& Key(std::string_view key);
  JsonWriter& String(std::string_view value);
  JsonWriter& Int(int64_t value);
  JsonWriter& UInt(uint64_t value);
  JsonWriter& Double(double value);  // shortest text that reads back to the same double
  JsonWriter& Float(float value);    // shortest text that reads back to the same float
  JsonWriter& Bool(bool value);
  JsonWriter& Null();
  JsonWriter& Value(const Json& value);

 private:
  void Separate();
  std::string* out_;
  bool needs_comma_ = false;
};

}  // namespace cachalot
