#include "base/json.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/ascii.h"
#include "base/json_syntax.h"
#include "base/utf8.h"

namespace cachalot {
namespace {

constexpr size_t kMaxQuotedBytes = 64;

// A key for a message: long ones are cut.
std::string Quoted(std::string_view key) {
  const std::string_view head = key.substr(0, kMaxQuotedBytes);
  return fmt::format("\"{}{}\"", ReplaceInvalidUtf8(head), head.size() < key.size() ? "..." : "");
}

// Some two members with equal keys, or null.
const std::string* FindDuplicate(const Json::Object& object) {
  constexpr size_t kQuadraticBelow = 16;
  if (object.size() < kQuadraticBelow) {
    for (size_t i = 1; i < object.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (object[i].first == object[j].first) return &object[i].first;
      }
    }
    return nullptr;
  }
  std::vector<const std::string*> keys;
  keys.reserve(object.size());
  for (const Json::Member& member : object) keys.push_back(&member.first);
  std::sort(keys.begin(), keys.end(), [](const std::string* a, const std::string* b) { return *a < *b; });
  const auto same = [](const std::string* a, const std::string* b) { return *a == *b; };
  const auto found = std::adjacent_find(keys.begin(), keys.end(), same);
  return found == keys.end() ? nullptr : *found;
}

constexpr const char* kHalfSurrogate = "a \\u escape is half of a surrogate pair";

// Copies a string out of the DOM. The parser lets an escaped lone surrogate (\udc00) through, which is not UTF-8.
Result<std::string> ConvertString(std::string_view text) {
  if (FindInvalidUtf8(text) != std::string_view::npos) return Invalid(kHalfSurrogate);
  return std::string(text);
}

Result<Json> Convert(simdjson::dom::element element, int depth);

Result<Json> ConvertArray(simdjson::dom::array array, int depth) {
  Json::Array out;
  out.reserve(array.size());
  for (const simdjson::dom::element element : array) {
    CACHALOT_ASSIGN_OR_RETURN(Json value, Convert(element, depth));
    out.push_back(std::move(value));
  }
  return Json(std::move(out));
}

Result<Json> ConvertObject(simdjson::dom::object object, int depth) {
  Json::Object out;
  out.reserve(object.size());
  for (const auto& [key, element] : object) {
    CACHALOT_ASSIGN_OR_RETURN(std::string name, ConvertString(key));
    CACHALOT_ASSIGN_OR_RETURN(Json value, Convert(element, depth));
    out.emplace_back(std::move(name), std::move(value));
  }
  if (const std::string* key = FindDuplicate(out)) return Invalid("duplicate key " + Quoted(*key));
  return Json(std::move(out));
}

Status TooDeep() { return Invalid(fmt::format("nesting is deeper than {}", kMaxJsonDepth)); }

// `depth` arrays and objects are open around the element. The parser's own limit does not count empty ones.
Result<Json> Convert(simdjson::dom::element element, int depth) {
  using simdjson::dom::element_type;
  if (depth == kMaxJsonDepth && (element.is_array() || element.is_object())) return TooDeep();
  switch (element.type()) {
    case element_type::NULL_VALUE: return Json();
    case element_type::BOOL: return Json(element.get_bool().value_unsafe());
    case element_type::INT64: return Json(element.get_int64().value_unsafe());
    case element_type::UINT64: return Json(static_cast<double>(element.get_uint64().value_unsafe()));
    case element_type::DOUBLE: return Json(element.get_double().value_unsafe());
    case element_type::STRING: {
      CACHALOT_ASSIGN_OR_RETURN(std::string text, ConvertString(element.get_string().value_unsafe()));
      return Json(std::move(text));
    }
    case element_type::ARRAY: return ConvertArray(element.get_array().value_unsafe(), depth + 1);
    case element_type::OBJECT: return ConvertObject(element.get_object().value_unsafe(), depth + 1);
  }
  return Internal("unknown JSON element type");
}

// The text with "e0" after every integer of more than 18 digits, so that the parser reads it as a double.
std::string WithLongIntegersAsDoubles(std::string_view text) {
  constexpr size_t kAlwaysFitsDigits = 18;
  std::string out;
  out.reserve(text.size() + text.size() / kAlwaysFitsDigits * 2);
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    if (in_string || !IsDigit(text[i])) {
      const bool escape = in_string && text[i] == '\\' && i + 1 < text.size();
      if (text[i] == '"') in_string = !in_string;
      out.append(text.substr(i, escape ? 2 : 1));
      i += escape ? 2 : 1;
      continue;
    }
    const size_t begin = i;
    while (i < text.size() && IsDigit(text[i])) ++i;
    out.append(text.substr(begin, i - begin));
    const char before = begin > 0 ? text[begin - 1] : ' ';
    const char after = i < text.size() ? text[i] : ' ';
    const bool fraction_or_exponent = before == '.' || before == 'e' || before == 'E' || before == '+';
    const bool continues = after == '.' || after == 'e' || after == 'E';
    const bool exponent_sign = before == '-' && begin >= 2 && (text[begin - 2] == 'e' || text[begin - 2] == 'E');
    if (i - begin > kAlwaysFitsDigits && !fraction_or_exponent && !continues && !exponent_sign) out += "e0";
  }
  return out;
}

Result<Json> ParsePadded(const simdjson::padded_string& padded, simdjson::error_code* error) {
  simdjson::dom::parser parser;
  // The parser counts the scalar level too, hence + 1.
  *error = parser.allocate(padded.size(), kMaxJsonDepth + 1);
  if (*error != simdjson::SUCCESS) return Internal("out of memory for a JSON document");
  simdjson::dom::element root;
  *error = parser.parse(padded).get(root);
  if (*error == simdjson::SUCCESS) return Convert(root, 0);
  if (*error == simdjson::DEPTH_ERROR) return TooDeep();
  if (*error == simdjson::NUMBER_ERROR) return Invalid("a number is out of range");
  if (*error == simdjson::STRING_ERROR) return Invalid(kHalfSurrogate);
  return Invalid(simdjson::error_message(*error));
}

void AppendEscaped(std::string* out, unsigned char c) {
  switch (c) {
    case '"': *out += "\\\""; break;
    case '\\': *out += "\\\\"; break;
    case '\b': *out += "\\b"; break;
    case '\f': *out += "\\f"; break;
    case '\n': *out += "\\n"; break;
    case '\r': *out += "\\r"; break;
    case '\t': *out += "\\t"; break;
    default: fmt::format_to(std::back_inserter(*out), "\\u{:04x}", c);
  }
}

void AppendString(std::string* out, std::string_view text) {
  out->push_back('"');
  size_t plain = 0;  // text[plain, pos) is still to be copied
  for (size_t pos = 0; pos < text.size();) {
    const unsigned char byte = static_cast<unsigned char>(text[pos]);
    const Utf8Char c = byte < 0x80 ? Utf8Char{byte, 1, true} : DecodeUtf8(text, pos);
    if (!c.valid || byte < 0x20 || byte == '"' || byte == '\\') {
      out->append(text.substr(plain, pos - plain));
      if (c.valid) {
        AppendEscaped(out, byte);
      } else {
        AppendUtf8(out, kReplacementCharacter);
      }
      plain = pos + c.bytes;
    }
    pos += c.bytes;
  }
  out->append(text.substr(plain));
  out->push_back('"');
}

template <class Number>
void AppendNumber(std::string* out, Number value) {
  if (!std::isfinite(value)) {
    *out += "null";
    return;
  }
  const size_t begin = out->size();
  fmt::format_to(std::back_inserter(*out), "{}", value);
  const bool looks_like_integer = out->find_first_of(".e", begin) == std::string::npos;
  if (looks_like_integer) *out += ".0";
}

}  // namespace

std::optional<double> Json::AsNumber() const {
  if (const int64_t* integer = AsInt()) return static_cast<double>(*integer);
  if (const double* number = std::get_if<double>(&value_)) return *number;
  return std::nullopt;
}

const Json* Json::Find(std::string_view key) const {
  const Object* object = AsObject();
  if (object == nullptr) return nullptr;
  for (const Member& member : *object) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

const char* Json::TypeName() const {
  constexpr const char* kNames[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
  return kNames[value_.index()];
}

std::string Json::Dump() const {
  std::string out;
  JsonWriter(&out).Value(*this);
  return out;
}

Result<Json> ParseJson(std::string_view text) {
  if (const size_t offset = FindInvalidUtf8(text); offset != std::string_view::npos) {
    return Invalid(fmt::format("invalid JSON: not UTF-8 at byte {}", offset));
  }
  simdjson::error_code error;
  Result<Json> parsed = ParsePadded(simdjson::padded_string(text), &error);
  if (error == simdjson::NUMBER_ERROR) {
    parsed = ParsePadded(simdjson::padded_string(WithLongIntegersAsDoubles(text)), &error);
  }
  if (parsed.ok()) return parsed;
  if (const std::optional<JsonSyntaxError> found = FindJsonSyntaxError(text)) {
    return Invalid(fmt::format("invalid JSON: expected {} at byte {}", found->expected, found->offset));
  }
  return parsed.status().Annotate("invalid JSON");
}

void JsonWriter::Separate() {
  if (needs_comma_) out_->push_back(',');
  needs_comma_ = true;
}

JsonWriter& JsonWriter::BeginObject() {
  Separate();
  out_->push_back('{');
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::EndObject() {
  out_->push_back('}');
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::BeginArray() {
  Separate();
  out_->push_back('[');
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::EndArray() {
  out_->push_back(']');
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  Separate();
  AppendString(out_, key);
  out_->push_back(':');
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view value) {
  Separate();
  AppendString(out_, value);
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) {
  Separate();
  fmt::format_to(std::back_inserter(*out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::UInt(uint64_t value) {
  Separate();
  fmt::format_to(std::back_inserter(*out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::Double(double value) {
  Separate();
  AppendNumber(out_, value);
  return *this;
}

JsonWriter& JsonWriter::Float(float value) {
  Separate();
  AppendNumber(out_, value);
  return *this;
}

JsonWriter& JsonWriter::Bool(bool value) {
  Separate();
  *out_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::Null() {
  Separate();
  *out_ += "null";
  return *this;
}

JsonWriter& JsonWriter::Value(const Json& value) {
  if (const bool* b = value.AsBool()) return Bool(*b);
  if (const int64_t* i = value.AsInt()) return Int(*i);
  if (const std::optional<double> number = value.AsNumber()) return Double(*number);
  if (const std::string* text = value.AsString()) return String(*text);
  if (const Json::Array* array = value.AsArray()) {
    BeginArray();
    for (const Json& element : *array) Value(element);
    return EndArray();
  }
  if (const Json::Object* object = value.AsObject()) {
    BeginObject();
    for (const auto& [key, member] : *object) Key(key).Value(member);
    return EndObject();
  }
  return Null();
}

}  // namespace cachalot
