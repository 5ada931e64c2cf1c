#include "text/jinja_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/utf8.h"
#include "text/jinja_builtins.h"
#include "text/jinja_ops.h"
#include "text/jinja_unicode.h"

namespace cachalot::text::jinja {
namespace {

// Strips while `drop` says so of the outermost character.
template <class Drop>
std::string_view Strip(std::string_view text, Side side, Drop&& drop) {
  if (side != Side::kRight) {
    while (!text.empty()) {
      const Utf8Char c = DecodeUtf8(text, 0);
      if (!drop(text.substr(0, c.bytes), c.code_point)) break;
      text.remove_prefix(c.bytes);
    }
  }
  if (side != Side::kLeft) {
    while (!text.empty()) {
      const size_t last = PreviousChar(text, text.size());
      if (!drop(text.substr(last), DecodeUtf8(text, last).code_point)) break;
      text = text.substr(0, last);
    }
  }
  return text;
}

// Writes repr(value) piece by piece, within the budgets of the runtime.
class ReprWriter {
 public:
  explicit ReprWriter(Runtime& rt) : rt_(rt) {}

  Result<std::string> Run(const Value& value) {
    CACHALOT_RETURN_IF_ERROR(Write(value));
    return std::move(out_);
  }

 private:
  Status Write(const Value& value) {
    const Runtime::Level level(&rt_);
    if (!level.ok()) return Runtime::TooDeep();
    CACHALOT_RETURN_IF_ERROR(rt_.Tick());
    CACHALOT_RETURN_IF_ERROR(rt_.CanGrow(out_.size()));
    switch (value.kind()) {
      case Kind::kMissing:
      case Kind::kUndefined: return Put("Undefined");
      case Kind::kNone: return Put("None");
      case Kind::kBool: return Put(value.integer() != 0 ? "True" : "False");
      case Kind::kInt: return Put(std::to_string(value.integer()));
      case Kind::kFloat: return Put(FloatRepr(value.number()));
      case Kind::kStr: return WriteStr(*value.as<StrObject>());
      case Kind::kList: return WriteItems("[", value.items(), "]");
      case Kind::kTuple: return WriteItems("(", value.items(), value.items().size() == 1 ? ",)" : ")");
      case Kind::kDict: return WriteDict(value.dict());
      case Kind::kDictView: return WriteView(value);
      case Kind::kRange: return WriteRange(*value.as<RangeObject>());
      case Kind::kNamespace: return WriteNamespace(value);
      case Kind::kMacro: return WriteMacro(*value.as<MacroObject>());
      case Kind::kLoop: return WriteLoop(value.as<LoopObject>());
      case Kind::kFunction: return Put(fmt::format("<function {}>", value.function()->name));
      default: return Put(fmt::format("<{} object>", TypeName(value)));
    }
  }

  Status Put(std::string_view text) {
    out_ += text;
    return OkStatus();
  }

  Status WriteStr(const StrObject& str) {
    CACHALOT_RETURN_IF_ERROR(rt_.TickBytes(str.text.size() * 8));
    CACHALOT_RETURN_IF_ERROR(rt_.CanGrow(out_.size() + str.text.size() * 4));
    return Put(str.markup ? "Markup(" + StrRepr(str.text) + ")" : StrRepr(str.text));
  }

  Status WriteItems(std::string_view open, const std::vector<Value>& items, std::string_view close) {
    out_ += open;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += ", ";
      CACHALOT_RETURN_IF_ERROR(Write(items[i]));
    }
    return Put(close);
  }

  Status WriteDict(const Dict& dict) {
    out_ += "{";
    for (size_t i = 0; i < dict.entries().size(); ++i) {
      if (i > 0) out_ += ", ";
      CACHALOT_RETURN_IF_ERROR(Write(dict.entries()[i].key));
      out_ += ": ";
      CACHALOT_RETURN_IF_ERROR(Write(dict.entries()[i].value));
    }
    return Put("}");
  }

  Status WriteView(const Value& view) {
    CACHALOT_ASSIGN_OR_RETURN(std::vector<Value> items, ToVector(rt_, view));
    return WriteItems(fmt::format("{}([", TypeName(view)), items, "])");
  }

  Status WriteRange(const RangeObject& range) {
    out_ += fmt::format("range({}, {}", range.start, range.stop);
    if (range.step != 1) out_ += fmt::format(", {}", range.step);
    return Put(")");
  }

  Status WriteNamespace(const Value& value) {
    const Object* object = value.object();
    if (std::ranges::find(open_, object) != open_.end()) return Put("<Namespace {...}>");
    open_.push_back(object);
    out_ += "<Namespace ";
    CACHALOT_RETURN_IF_ERROR(WriteDict(value.as<NamespaceObject>()->attributes));
    open_.pop_back();
    return Put(">");
  }

  Status WriteMacro(const MacroObject& macro) {
    if (macro.macro->name.empty()) return Put("<Macro anonymous>");
    return Put(fmt::format("<Macro {}>", StrRepr(macro.macro->name)));
  }

  Status WriteLoop(LoopObject* loop) {
    CACHALOT_ASSIGN_OR_RETURN(const int64_t length, loop->Length(rt_));
    return Put(fmt::format("<LoopContext {}/{}>", loop->index0 + 1, length));
  }

  Runtime& rt_;
  std::string out_;
  std::vector<const Object*> open_;  // namespaces being written
};

}  // namespace

size_t FindText(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  const void* found = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  return found == nullptr ? std::string_view::npos : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

Result<size_t> FindTextBackward(Runtime& rt, std::string_view text, std::string_view needle, size_t end) {
  if (needle.size() > end) return std::string_view::npos;
  if (needle.empty()) return end;
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(end));
  for (size_t at = end - needle.size() + 1; at-- > 0;) {
    if (text[at] != needle[0]) continue;
    CACHALOT_RETURN_IF_ERROR(rt.TickBytes(needle.size()));
    if (text.compare(at, needle.size(), needle) == 0) return at;
  }
  return std::string_view::npos;
}

std::string_view StripSpace(std::string_view text, Side side) {
  return Strip(text, side, [](std::string_view, char32_t c) { return IsSpace(c); });
}

std::string_view StripChars(std::string_view text, std::string_view chars, Side side) {
  return Strip(text, side,
               [&](std::string_view c, char32_t) { return FindText(chars, c, 0) != std::string_view::npos; });
}

std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t start = 0;
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = DecodeUtf8(text, pos);
    const size_t end = pos;
    pos += c.bytes;
    if (!IsLineBreak(c.code_point)) continue;
    if (c.code_point == '\r' && pos < text.size() && text[pos] == '\n') ++pos;
    lines.push_back(text.substr(start, (keep_ends ? pos : end) - start));
    start = pos;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::string EscapeHtml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: out.push_back(c);
    }
  }
  return out;
}

std::string FloatRepr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[40];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<size_t>(result.ptr - buffer));
  std::string out;
  if (text[0] == '-') {
    out = "-";
    text.remove_prefix(1);
  }
  const size_t e = text.find('e');
  std::string digits(text.substr(0, e));
  std::erase(digits, '.');
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), text.data() + text.size(), exponent);
  const int count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (count > 1) out += "." + digits.substr(1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const int whole = exponent + 1;
  if (count <= whole) return out + digits + std::string(static_cast<size_t>(whole - count), '0') + ".0";
  return out + digits.substr(0, static_cast<size_t>(whole)) + "." + digits.substr(static_cast<size_t>(whole));
}

std::string StrRepr(std::string_view text) {
  const bool use_double = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char32_t quote = use_double ? '"' : '\'';
  std::string out(1, static_cast<char>(quote));
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = DecodeUtf8(text, pos);
    if (c.code_point == quote || c.code_point == '\\') {
      out += '\\';
      out += static_cast<char>(c.code_point);
    } else if (c.code_point == '\n') {
      out += "\\n";
    } else if (c.code_point == '\r') {
      out += "\\r";
    } else if (c.code_point == '\t') {
      out += "\\t";
    } else if (IsPrintable(c.code_point)) {
      AppendUtf8(&out, c.code_point);
    } else {
      out += EscapedCode(c.code_point);
    }
    pos += c.bytes;
  }
  out += static_cast<char>(quote);
  return out;
}

Result<std::string> ToText(Runtime& rt, const Value& value) {
  if (value.is(Kind::kStr)) {
    CACHALOT_RETURN_IF_ERROR(rt.TickBytes(value.text().size()));
    return value.text();
  }
  if (value.is(Kind::kUndefined)) return std::string();
  return ReprWriter(rt).Run(value);
}

Result<std::string> ToRepr(Runtime& rt, const Value& value) { return ReprWriter(rt).Run(value); }

Result<Value> SoftStr(Runtime& rt, const Value& value) {
  if (value.is(Kind::kStr)) return value;
  CACHALOT_ASSIGN_OR_RETURN(std::string text, ToText(rt, value));
  return rt.Str(std::move(text));
}

}  // namespace cachalot::text::jinja
