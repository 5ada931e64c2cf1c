#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "text/jinja_builtins.h"
#include "text/jinja_format.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace cachalot::text::jinja {
namespace {

bool IsSafe(const Value& value) { return value.is(Kind::kStr) && value.as<StrObject>()->markup; }

// Calls the method of str on soft_str(value).
Result<Value> CallTextMethod(Runtime& rt, std::string_view method, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const Value text, SoftStr(rt, in.self));
  return CallBuiltin(rt, *FindIn(TextMethods(), method), text, std::move(in.arguments));
}

Result<Value> Upper(Runtime& rt, CallInput in) { return CallTextMethod(rt, "upper", in); }
Result<Value> Lower(Runtime& rt, CallInput in) { return CallTextMethod(rt, "lower", in); }
Result<Value> Capitalized(Runtime& rt, CallInput in) { return CallTextMethod(rt, "capitalize", in); }

Result<Value> Trim(Runtime& rt, CallInput in) {
  if (!in.has(0)) in.arguments.positional.clear();
  return CallTextMethod(rt, "strip", in);
}

Result<Value> Center(Runtime& rt, CallInput in) {
  if (!in.has(0)) in.arguments.positional[0] = Value::Int(80);
  return CallTextMethod(rt, "center", in);
}

Result<Value> Replace(Runtime& rt, CallInput in) {
  Arguments arguments;
  for (size_t i = 0; i < 2; ++i) {
    CACHALOT_ASSIGN_OR_RETURN(std::string text, ToText(rt, in[i]));
    arguments.positional.push_back(rt.Str(std::move(text)));
  }
  if (in.has(2) && !in[2].is(Kind::kNone)) arguments.positional.push_back(in[2]);
  CACHALOT_ASSIGN_OR_RETURN(std::string text, ToText(rt, in.self));
  return CallBuiltin(rt, *FindIn(TextMethods(), "replace"), rt.Str(std::move(text)), std::move(arguments));
}

bool StartsWord(char32_t c) { return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || IsSpace(c); }

Result<Value> Title(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string text, ToText(rt, in.self));
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(text.size() * 8));
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char first = DecodeUtf8(text, pos);
    const bool is_separator = StartsWord(first.code_point);
    size_t end = pos;
    while (end < text.size()) {
      const Utf8Char c = DecodeUtf8(text, end);
      if (StartsWord(c.code_point) != is_separator) break;
      end += c.bytes;
    }
    const std::string_view piece = std::string_view(text).substr(pos, end - pos);
    out += ToUpper(piece.substr(0, first.bytes));
    out += ToLower(piece.substr(first.bytes));
    pos = end;
  }
  return rt.Str(std::move(out));
}

Result<Value> Indent(Runtime& rt, CallInput in) {
  if (in.self.is(Kind::kUndefined)) return UndefinedError(in.self);
  if (!in.self.is(Kind::kStr)) return OperandError("+=", in.self, rt.Str({}));
  std::string indent;
  if (in.has(0) && in[0].is(Kind::kStr)) {
    indent = in[0].text();
  } else {
    CACHALOT_ASSIGN_OR_RETURN(const int64_t width, IntArgument(in, 0, 4));
    CACHALOT_RETURN_IF_ERROR(rt.CanGrow(static_cast<size_t>(std::max<int64_t>(width, 0))));
    indent.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  const bool indent_blank = Truth(in[2]);
  const std::string text = in.self.text() + "\n";
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(text.size() * 8));
  const std::vector<std::string_view> lines = SplitLines(text, false);
  size_t total = text.size();
  if (__builtin_mul_overflow(lines.size(), indent.size(), &total)) total = SIZE_MAX / 2;
  CACHALOT_RETURN_IF_ERROR(rt.CanGrow(total + text.size()));
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(total));
  std::string out = Truth(in[1]) ? indent : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += '\n';
    if (i > 0 && (indent_blank || !lines[i].empty())) out += indent;
    out += lines[i];
  }
  return rt.Str(std::move(out), IsSafe(in.self));
}

Result<Value> String(Runtime& rt, CallInput in) { return SoftStr(rt, in.self); }

Result<Value> WordCount(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string text, ToText(rt, in.self));
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(text.size() * 8));
  int64_t words = 0;
  bool in_word = false;
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = DecodeUtf8(text, pos);
    const bool is_word = c.code_point == '_' || IsAlnum(c.code_point);
    if (is_word && !in_word) ++words;
    in_word = is_word;
    pos += c.bytes;
  }
  return Value::Int(words);
}

Result<Value> Truncate(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const int64_t length, IntArgument(in, 0, 255));
  const Value end = in.has(2) ? in[2] : rt.Str("...");
  if (!end.is(Kind::kStr)) return Invalid(fmt::format("truncate's end must be a str, not {}", TypeName(end)));
  const bool has_leeway = in.has(3) && !in[3].is(Kind::kNone);
  CACHALOT_ASSIGN_OR_RETURN(const int64_t leeway, has_leeway ? IntArgument(in, 3, 5) : Result<int64_t>(5));
  const int64_t end_chars = *LengthOf(end);
  if (length < end_chars) return Invalid(fmt::format("expected length >= {}, got {}", end_chars, length));
  if (leeway < 0) return Invalid(fmt::format("expected leeway >= 0, got {}", leeway));
  const std::optional<int64_t> chars = LengthOf(in.self);
  if (chars && (*chars <= length || *chars - length <= leeway)) return in.self;
  if (!in.self.is(Kind::kStr)) return Invalid(fmt::format("truncate needs a str, not {}", TypeName(in.self)));
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(in.self.text().size()));
  const StrObject& text = *in.self.as<StrObject>();
  std::string_view kept = CharRange(text, 0, static_cast<size_t>(length - end_chars));
  if (!Truth(in[1])) kept = kept.substr(0, kept.rfind(' '));
  return rt.Str(std::string(kept) + end.text(), text.markup);
}

Result<Value> Format(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const Value text, SoftStr(rt, in.self));
  if (!in.arguments.positional.empty() && !in.arguments.keywords.empty()) {
    return Invalid("can't handle positional and keyword arguments at the same time");
  }
  if (in.arguments.keywords.empty()) return FormatPercent(rt, text, rt.Tuple(std::move(in.arguments.positional)));
  Dict values;
  for (auto& [name, value] : in.arguments.keywords) values.SetText(rt, name, std::move(value));
  return FormatPercent(rt, text, rt.MakeDict(std::move(values)));
}

}  // namespace

std::span<const Builtin> TextFilters() {
  static constexpr Builtin kTable[] = {
      {"upper", Upper},
      {"lower", Lower},
      {"capitalize", Capitalized},
      {"title", Title},
      {"trim", Trim, 0, {"chars"}},
      {"center", Center, 0, {"width"}},
      {"replace", Replace, 2, {"old", "new", "count"}},
      {"indent", Indent, 0, {"width", "first", "blank"}},
      {"string", String},
      {"wordcount", WordCount},
      {"truncate", Truncate, 0, {"length", "killwords", "end", "leeway"}},
      {"format", Format, kAnyArguments},
  };
  return kTable;
}

}  // namespace cachalot::text::jinja
