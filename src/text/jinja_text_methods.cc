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

bool IsSafe(const Value& value) { return value.as<StrObject>()->markup; }

// A result of a method of `self`: HTML-safe if that is.
Value Like(Runtime& rt, const Value& self, std::string text) { return rt.Str(std::move(text), IsSafe(self)); }

// An argument that becomes part of the result: escaped when `self` is HTML-safe and the argument is not.
std::string Inserted(const Value& self, const Value& argument) {
  return IsSafe(self) && !IsSafe(argument) ? EscapeHtml(argument.text()) : argument.text();
}

template <std::string (*Map)(std::string_view)>
Result<Value> Mapped(Runtime& rt, CallInput in) {
  const std::string& text = in.self.text();
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(text.size() * 8));
  CACHALOT_RETURN_IF_ERROR(rt.CanGrow(text.size() * 3));
  return Like(rt, in.self, Map(text));
}

template <Side side>
Result<Value> Strip(Runtime& rt, CallInput in) {
  const std::string& text = in.self.text();
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(text.size() * 2));
  if (!in.has(0) || in[0].is(Kind::kNone)) return Like(rt, in.self, std::string(StripSpace(text, side)));
  CACHALOT_ASSIGN_OR_RETURN(const std::string_view chars, TextArgument(in, 0));
  size_t work = 0;
  if (__builtin_mul_overflow(text.size(), chars.size(), &work)) work = SIZE_MAX / 2;
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(work));
  return Like(rt, in.self, std::string(StripChars(text, chars, side)));
}

Result<std::string> FillCharacter(const CallInput& in, size_t i) {
  if (!in.has(i)) return std::string(" ");
  CACHALOT_RETURN_IF_ERROR(TextArgument(in, i).status());
  std::string fill = Inserted(in.self, in[i]);
  if (CountChars(fill) != 1) return Invalid("The fill character must be exactly one character long");
  return fill;
}

template <char align>
Result<Value> Justify(Runtime& rt, CallInput in) {
  FormatSpec spec;
  CACHALOT_ASSIGN_OR_RETURN(spec.width, IntArgument(in, 0, 0));
  CACHALOT_ASSIGN_OR_RETURN(spec.fill, FillCharacter(in, 1));
  spec.align = align;
  if (align != '^') {
    CACHALOT_ASSIGN_OR_RETURN(std::string text, PadText(rt, in.self.text(), spec, align));
    return Like(rt, in.self, std::move(text));
  }
  // str.center puts the odd character of an odd width to the left.
  const int64_t missing = spec.width - *LengthOf(in.self);
  if (missing <= 0) return in.self;
  spec.width -= missing - missing / 2 - (missing & spec.width & 1);
  spec.align = '>';
  CACHALOT_ASSIGN_OR_RETURN(const std::string left, PadText(rt, in.self.text(), spec, '>'));
  CACHALOT_ASSIGN_OR_RETURN(spec.width, IntArgument(in, 0, 0));
  spec.align = '<';
  CACHALOT_ASSIGN_OR_RETURN(std::string text, PadText(rt, left, spec, '<'));
  return Like(rt, in.self, std::move(text));
}

Result<Value> ZeroFill(Runtime& rt, CallInput in) {
  FormatSpec spec;
  CACHALOT_ASSIGN_OR_RETURN(spec.width, IntArgument(in, 0, 0));
  std::string_view text = in.self.text();
  std::string sign;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    sign = text.substr(0, 1);
    text.remove_prefix(1);
    spec.width = std::max<int64_t>(spec.width, 1) - 1;
  }
  spec.fill = "0";
  CACHALOT_ASSIGN_OR_RETURN(const std::string padded, PadText(rt, text, spec, '>'));
  return Like(rt, in.self, sign + padded);
}

// str.replace(old, new, count); an empty `old` is found before every character and at the end.
Result<Value> Replace(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string_view old, TextArgument(in, 0));
  CACHALOT_RETURN_IF_ERROR(TextArgument(in, 1).status());
  CACHALOT_ASSIGN_OR_RETURN(int64_t count, IntArgument(in, 2, -1));
  const std::string replacement = Inserted(in.self, in[1]);
  const std::string& text = in.self.text();
  if (count < 0) count = INT64_MAX;
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(text.size() * 2));
  std::string out;
  size_t pos = 0;
  for (; count > 0; --count) {
    size_t found = FindText(text, old, pos);
    if (found == std::string_view::npos) break;
    CACHALOT_RETURN_IF_ERROR(rt.TickBytes(replacement.size()));
    CACHALOT_RETURN_IF_ERROR(rt.CanGrow(out.size() + replacement.size()));
    out.append(text, pos, found - pos);
    out += replacement;
    pos = found + old.size();
    if (!old.empty()) continue;
    if (pos == text.size()) return Like(rt, in.self, std::move(out));
    const uint32_t bytes = DecodeUtf8(text, pos).bytes;
    out.append(text, pos, bytes);
    pos += bytes;
  }
  out.append(text, pos);
  return Like(rt, in.self, std::move(out));
}

Result<Value> RemovePrefix(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string_view prefix, TextArgument(in, 0));
  std::string_view text = in.self.text();
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return Like(rt, in.self, std::string(text));
}

Result<Value> RemoveSuffix(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string_view suffix, TextArgument(in, 0));
  std::string_view text = in.self.text();
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return Like(rt, in.self, std::string(text));
}

Result<Value> ExpandTabs(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const int64_t width, IntArgument(in, 0, 8));
  const std::string& text = in.self.text();
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(text.size() * 4));
  std::string out;
  int64_t column = 0;
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = DecodeUtf8(text, pos);
    if (c.code_point == '\t') {
      const int64_t spaces = width > 0 ? width - column % width : 0;
      CACHALOT_RETURN_IF_ERROR(rt.CanGrow(out.size() + static_cast<size_t>(spaces)));
      CACHALOT_RETURN_IF_ERROR(rt.TickBytes(static_cast<size_t>(spaces)));
      out.append(static_cast<size_t>(spaces), ' ');
      column += spaces;
    } else {
      out.append(text, pos, c.bytes);
      column = c.code_point == '\n' || c.code_point == '\r' ? 0 : column + 1;
    }
    pos += c.bytes;
  }
  return Like(rt, in.self, std::move(out));
}

Result<Value> Join(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const std::vector<Value> items, ToVector(rt, in[0]));
  const bool is_safe = IsSafe(in.self);
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += in.self.text();
    if (!items[i].is(Kind::kStr) && !is_safe) {
      return Invalid(fmt::format("sequence item {}: expected str instance, {} found", i, TypeName(items[i])));
    }
    CACHALOT_ASSIGN_OR_RETURN(const std::string text, ToText(rt, items[i]));
    CACHALOT_RETURN_IF_ERROR(rt.CanGrow(out.size() + text.size() + in.self.text().size()));
    CACHALOT_RETURN_IF_ERROR(rt.TickBytes(in.self.text().size()));
    out += is_safe && !(items[i].is(Kind::kStr) && IsSafe(items[i])) ? EscapeHtml(text) : text;
  }
  return Like(rt, in.self, std::move(out));
}

Result<Value> Format(Runtime& rt, CallInput in) { return FormatBraces(rt, in.self, in.arguments); }

Result<Value> FormatMap(Runtime& rt, CallInput in) {
  if (!in[0].is(Kind::kDict)) return Invalid("format_map() needs a mapping");
  Arguments arguments;
  for (const Dict::Entry& entry : in[0].dict().entries()) {
    if (entry.key.is(Kind::kStr)) arguments.keywords.emplace_back(entry.key.text(), entry.value);
  }
  CACHALOT_RETURN_IF_ERROR(rt.Tick(arguments.keywords.size()));
  return FormatBraces(rt, in.self, arguments);
}

Result<Value> Unsupported(Runtime&, CallInput) {
  return Invalid("the methods encode, maketrans and translate of str are not supported");
}

}  // namespace

std::span<const Builtin> TextMethods() {
  static constexpr Builtin kTable[] = {
      {"upper", Mapped<ToUpper>},
      {"lower", Mapped<ToLower>},
      {"title", Mapped<ToTitle>},
      {"capitalize", Mapped<Capitalize>},
      {"swapcase", Mapped<SwapCase>},
      {"casefold", Mapped<FoldCase>},
      {"strip", Strip<Side::kBoth>, 0, {"_"}},
      {"lstrip", Strip<Side::kLeft>, 0, {"_"}},
      {"rstrip", Strip<Side::kRight>, 0, {"_"}},
      {"center", Justify<'^'>, 1, {"_", "_"}},
      {"ljust", Justify<'<'>, 1, {"_", "_"}},
      {"rjust", Justify<'>'>, 1, {"_", "_"}},
      {"zfill", ZeroFill, 1, {"_"}},
      {"replace", Replace, 2, {"_", "_", "_"}},
      {"removeprefix", RemovePrefix, 1, {"_"}},
      {"removesuffix", RemoveSuffix, 1, {"_"}},
      {"expandtabs", ExpandTabs, 0, {"tabsize"}},
      {"join", Join, 1, {"_"}},
      {"format", Format, kAnyArguments},
      {"format_map", FormatMap, 1, {"_"}},
      {"encode", Unsupported, kAnyArguments},
      {"maketrans", Unsupported, kAnyArguments},
      {"translate", Unsupported, kAnyArguments},
  };
  return kTable;
}

}  // namespace cachalot::text::jinja
