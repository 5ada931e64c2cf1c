#include "server/field_reader.h"

#include "base/utf8.h"

namespace cachalot::server {

const Json* FieldReader::Find(std::string_view key) const {
  const Json* value = object_.Find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string FieldReader::PathOf(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void FieldReader::Fail(std::string path, std::string problem) {
  if (!error_) error_ = InvalidField(std::move(path), std::move(problem));
}

void FieldReader::WrongType(std::string path, std::string_view expected, const Json& got) {
  Fail(std::move(path), fmt::format("expected {}, got {}", expected, got.TypeName()));
}

void FieldReader::Adopt(std::optional<ApiError> error) {
  if (!error_) error_ = std::move(error);
}

void FieldReader::Bool(std::string_view key, bool* out) {
  const Json* value = Find(key);
  if (value == nullptr) return;
  if (const bool* flag = value->AsBool()) {
    *out = *flag;
  } else {
    WrongType(PathOf(key), "boolean", *value);
  }
}

void FieldReader::String(std::string_view key, std::string* out) {
  const Json* value = Find(key);
  if (value == nullptr) return;
  if (const std::string* text = value->AsString()) {
    *out = *text;
  } else {
    WrongType(PathOf(key), "string", *value);
  }
}

void FieldReader::Float(std::string_view key, float* out) {
  const Json* value = Find(key);
  if (value == nullptr) return;
  if (const std::optional<double> number = value->AsNumber()) {
    *out = static_cast<float>(*number);
  } else {
    WrongType(PathOf(key), "number", *value);
  }
}

std::optional<int64_t> FieldReader::IntIn(std::string_view key, int64_t low, int64_t high) {
  const Json* value = Find(key);
  if (value == nullptr) return std::nullopt;
  const int64_t* number = value->AsInt();
  if (number == nullptr) {
    WrongType(PathOf(key), "integer", *value);
    return std::nullopt;
  }
  if (*number < low || *number > high) {
    Fail(PathOf(key), fmt::format("is {}; it must be between {} and {}", *number, low, high));
    return std::nullopt;
  }
  return *number;
}

std::string Excerpt(std::string_view text) {
  constexpr size_t kMaxBytes = 48;
  const std::string_view head = text.substr(0, kMaxBytes);
  const std::string_view whole = head.substr(0, head.size() - IncompleteUtf8Suffix(head));
  return fmt::format("\"{}{}\"", whole, whole.size() < text.size() ? "..." : "");
}

}  // namespace cachalot::server
