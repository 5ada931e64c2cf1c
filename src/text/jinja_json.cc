#include "text/jinja_json.h"

#include <fmt/format.h>

#include <cmath>

#include "base/utf8.h"
#include "text/jinja_builtins.h"
#include "text/jinja_ops.h"
#include "text/jinja_sequence.h"
#include "text/jinja_text.h"

namespace cachalot::text::jinja {
namespace {

struct JsonStyle {
  bool ascii = false;
  bool sort_keys = false;
  bool multiline = false;
  std::string indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

class JsonDumper {
 public:
  JsonDumper(Runtime& rt, JsonStyle style) : rt_(rt), style_(std::move(style)) {}

  Result<Value> Run(const Value& value) {
    CACHALOT_RETURN_IF_ERROR(Write(value));
    return rt_.Str(std::move(out_));
  }

 private:
  Status Write(const Value& value) {
    CACHALOT_RETURN_IF_ERROR(rt_.Tick());
    CACHALOT_RETURN_IF_ERROR(rt_.CanGrow(out_.size()));
    switch (value.kind()) {
      case Kind::kStr: return WriteText(value.text());
      case Kind::kList:
      case Kind::kTuple: return WriteList(value.items());
      case Kind::kDict: return WriteDict(value.dict());
      case Kind::kNone:
      case Kind::kBool:
      case Kind::kInt:
      case Kind::kFloat: out_ += Scalar(value); return OkStatus();
      default: return Invalid(fmt::format("Object of type {} is not JSON serializable", TypeName(value)));
    }
  }

  static std::string Scalar(const Value& value) {
    if (value.is(Kind::kNone)) return "null";
    if (value.is(Kind::kBool)) return value.integer() != 0 ? "true" : "false";
    if (value.is(Kind::kInt)) return std::to_string(value.integer());
    if (std::isnan(value.number())) return "NaN";
    if (std::isinf(value.number())) return value.number() > 0 ? "Infinity" : "-Infinity";
    return FloatRepr(value.number());
  }

  void AppendCodeUnit(uint32_t unit) { out_ += fmt::format("\\u{:04x}", unit); }

  Status WriteText(std::string_view text) {
    CACHALOT_RETURN_IF_ERROR(rt_.TickBytes(text.size() * 4));
    CACHALOT_RETURN_IF_ERROR(rt_.CanGrow(out_.size() + text.size() * 6));
    out_ += '"';
    for (size_t pos = 0; pos < text.size();) {
      const Utf8Char c = DecodeUtf8(text, pos);
      WriteChar(static_cast<uint32_t>(c.code_point), text.substr(pos, c.bytes));
      pos += c.bytes;
    }
    out_ += '"';
    return OkStatus();
  }

  void WriteChar(uint32_t code, std::string_view bytes) {
    switch (code) {
      case '"': out_ += "\\\""; return;
      case '\\': out_ += "\\\\"; return;
      case '\n': out_ += "\\n"; return;
      case '\r': out_ += "\\r"; return;
      case '\t': out_ += "\\t"; return;
      case '\b': out_ += "\\b"; return;
      case '\f': out_ += "\\f"; return;
      default: break;
    }
    if (code >= 0x20 && (!style_.ascii || code < 0x7F)) {
      out_ += bytes;
    } else if (code < 0x10000) {
      AppendCodeUnit(code);
    } else {
      AppendCodeUnit(0xD800 + ((code - 0x10000) >> 10));
      AppendCodeUnit(0xDC00 + ((code - 0x10000) & 0x3FF));
    }
  }

  // Before an item: the separator unless it is the first, and a new line where the style has them.
  Status Separate(bool is_first) {
    if (!is_first) out_ += style_.item_separator;
    if (!style_.multiline) return OkStatus();
    CACHALOT_RETURN_IF_ERROR(rt_.CanGrow(out_.size() + style_.indent.size() * static_cast<size_t>(level_)));
    CACHALOT_RETURN_IF_ERROR(rt_.TickBytes(style_.indent.size() * static_cast<size_t>(level_)));
    out_ += '\n';
    for (int i = 0; i < level_; ++i) out_ += style_.indent;
    return OkStatus();
  }

  Status WriteList(const std::vector<Value>& items) {
    if (items.empty()) {
      out_ += "[]";
      return OkStatus();
    }
    out_ += '[';
    ++level_;
    for (size_t i = 0; i < items.size(); ++i) {
      CACHALOT_RETURN_IF_ERROR(Separate(i == 0));
      CACHALOT_RETURN_IF_ERROR(Write(items[i]));
    }
    return Close(']');
  }

  Status Close(char bracket) {
    --level_;
    if (style_.multiline) CACHALOT_RETURN_IF_ERROR(Separate(true));
    out_ += bracket;
    return OkStatus();
  }

  Status WriteKey(const Value& key) {
    if (key.is(Kind::kStr)) return WriteText(key.text());
    const bool is_scalar = key.is(Kind::kNone) || key.is_number();
    if (!is_scalar) {
      return Invalid(fmt::format("keys must be str, int, float, bool or None, not {}", TypeName(key)));
    }
    out_ += '"' + Scalar(key) + '"';
    return OkStatus();
  }

  Status WriteDict(const Dict& dict) {
    if (dict.entries().empty()) {
      out_ += "{}";
      return OkStatus();
    }
    std::vector<Keyed> entries;
    for (const Dict::Entry& entry : dict.entries()) entries.push_back({entry.key, entry.value});
    if (style_.sort_keys) CACHALOT_RETURN_IF_ERROR(SortByKey(rt_, &entries, false));
    out_ += '{';
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      CACHALOT_RETURN_IF_ERROR(Separate(i == 0));
      CACHALOT_RETURN_IF_ERROR(WriteKey(entries[i].key));
      out_ += style_.key_separator;
      CACHALOT_RETURN_IF_ERROR(Write(entries[i].value));
    }
    return Close('}');
  }

  Runtime& rt_;
  JsonStyle style_;
  std::string out_;
  int level_ = 0;
};

Status ReadIndent(Runtime& rt, const Value& indent, JsonStyle* style) {
  if (indent.missing() || indent.is(Kind::kNone)) return OkStatus();
  style->multiline = true;
  style->item_separator = ",";
  if (indent.is(Kind::kStr)) {
    style->indent = indent.text();
    return OkStatus();
  }
  if (!indent.is_integral()) return Invalid(fmt::format("indent must be int or str, not {}", TypeName(indent)));
  const int64_t width = std::max<int64_t>(indent.integer(), 0);
  CACHALOT_RETURN_IF_ERROR(rt.CanGrow(static_cast<size_t>(width)));
  style->indent.assign(static_cast<size_t>(width), ' ');
  return OkStatus();
}

Status ReadSeparators(Runtime& rt, const Value& separators, JsonStyle* style) {
  if (separators.missing() || separators.is(Kind::kNone)) return OkStatus();
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<Value> pair, ToVector(rt, separators));
  if (pair.size() != 2 || !pair[0].is(Kind::kStr) || !pair[1].is(Kind::kStr)) {
    return Invalid("separators must be a pair of strings");
  }
  style->item_separator = pair[0].text();
  style->key_separator = pair[1].text();
  return OkStatus();
}

}  // namespace

Result<Value> FilterToJson(Runtime& rt, CallInput in) {
  JsonStyle style;
  style.ascii = Truth(in[0]);
  style.sort_keys = Truth(in[3]);
  CACHALOT_RETURN_IF_ERROR(ReadIndent(rt, in[1], &style));
  CACHALOT_RETURN_IF_ERROR(ReadSeparators(rt, in[2], &style));
  return JsonDumper(rt, std::move(style)).Run(in.self);
}

Result<Value> FromJson(Runtime& rt, const Json& json) {
  CACHALOT_RETURN_IF_ERROR(rt.Tick());
  if (const bool* value = json.AsBool()) return Value::Bool(*value);
  if (const int64_t* value = json.AsInt()) return Value::Int(*value);
  if (const std::string* value = json.AsString()) return rt.Str(*value);
  if (const Json::Array* array = json.AsArray()) {
    std::vector<Value> items;
    items.reserve(array->size());
    for (const Json& item : *array) {
      CACHALOT_ASSIGN_OR_RETURN(Value value, FromJson(rt, item));
      items.push_back(std::move(value));
    }
    return rt.List(std::move(items));
  }
  if (const Json::Object* object = json.AsObject()) {
    Dict dict;
    for (const Json::Member& member : *object) {
      CACHALOT_ASSIGN_OR_RETURN(Value value, FromJson(rt, member.second));
      dict.SetText(rt, member.first, std::move(value));
    }
    return rt.MakeDict(std::move(dict));
  }
  if (const std::optional<double> value = json.AsNumber()) return Value::Float(*value);
  return Value::None();
}

}  // namespace cachalot::text::jinja
