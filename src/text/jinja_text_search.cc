#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "text/jinja_builtins.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace cachalot::text::jinja {
namespace {

Value Piece(Runtime& rt, const Value& self, std::string_view text) {
  return rt.Str(std::string(text), self.as<StrObject>()->markup);
}

// The characters [start, end) that a search looks at.
struct Window {
  std::string_view text;
  size_t first_char = 0;
  bool in_range = true;  // false: nothing is found there, not even the empty string
};

Result<int64_t> Index(const CallInput& in, size_t i, int64_t missing) {
  if (in.has(i) && in[i].is(Kind::kNone)) return missing;
  return IntArgument(in, i, missing);
}

Result<Window> WindowOf(Runtime& rt, const CallInput& in) {
  const StrObject& text = *in.self.as<StrObject>();
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(text.text.size()));
  const int64_t length = static_cast<int64_t>(text.chars());
  CACHALOT_ASSIGN_OR_RETURN(int64_t start, Index(in, 1, 0));
  CACHALOT_ASSIGN_OR_RETURN(int64_t end, Index(in, 2, length));
  if (end > length) end = length;
  if (end < 0) end = std::max<int64_t>(end + length, 0);
  if (start < 0) start = start < -length ? 0 : start + length;
  if (start > end) return Window{{}, 0, false};
  return Window{CharRange(text, static_cast<size_t>(start), static_cast<size_t>(end)), static_cast<size_t>(start),
                true};
}

// Character index of the needle, or -1.
Result<int64_t> Search(Runtime& rt, const CallInput& in, bool backward) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string_view needle, TextArgument(in, 0));
  CACHALOT_ASSIGN_OR_RETURN(const Window window, WindowOf(rt, in));
  if (!window.in_range) return -1;
  size_t found = FindText(window.text, needle, 0);
  if (backward) {
    CACHALOT_ASSIGN_OR_RETURN(found, FindTextBackward(rt, window.text, needle, window.text.size()));
  }
  if (found == std::string_view::npos) return -1;
  return static_cast<int64_t>(window.first_char + CountChars(window.text.substr(0, found)));
}

template <bool backward>
Result<Value> Find(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const int64_t found, Search(rt, in, backward));
  return Value::Int(found);
}

template <bool backward>
Result<Value> FindOrFail(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const int64_t found, Search(rt, in, backward));
  if (found < 0) return Invalid("substring not found");
  return Value::Int(found);
}

Result<Value> Count(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string_view needle, TextArgument(in, 0));
  CACHALOT_ASSIGN_OR_RETURN(const Window window, WindowOf(rt, in));
  if (!window.in_range) return Value::Int(0);
  if (needle.empty()) return Value::Int(static_cast<int64_t>(CountChars(window.text)) + 1);
  int64_t count = 0;
  for (size_t at = FindText(window.text, needle, 0); at != std::string_view::npos;
       at = FindText(window.text, needle, at + needle.size())) {
    ++count;
  }
  return Value::Int(count);
}

template <bool at_end>
Result<Value> HasAffix(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const Window window, WindowOf(rt, in));
  const auto matches = [&](const Value& affix) {
    if (!window.in_range) return false;
    return at_end ? window.text.ends_with(affix.text()) : window.text.starts_with(affix.text());
  };
  const char* name = at_end ? "endswith" : "startswith";
  if (in[0].is(Kind::kStr)) return Value::Bool(matches(in[0]));
  if (!in[0].is(Kind::kTuple)) {
    return Invalid(fmt::format("{} first arg must be str or a tuple of str, not {}", name, TypeName(in[0])));
  }
  for (const Value& affix : in[0].items()) {
    if (!affix.is(Kind::kStr)) {
      return Invalid(fmt::format("tuple for {} must only contain str, not {}", name, TypeName(affix)));
    }
    if (matches(affix)) return Value::Bool(true);
  }
  return Value::Bool(false);
}

// Splits at runs of whitespace, at most `limit` times.
std::vector<std::string_view> SplitAtSpace(std::string_view text, int64_t limit) {
  std::vector<std::string_view> pieces;
  text = StripSpace(text, Side::kLeft);
  while (!text.empty()) {
    if (limit-- == 0) {
      pieces.push_back(text);
      break;
    }
    size_t end = 0;
    while (end < text.size()) {
      const Utf8Char c = DecodeUtf8(text, end);
      if (IsSpace(c.code_point)) break;
      end += c.bytes;
    }
    pieces.push_back(text.substr(0, end));
    text = StripSpace(text.substr(end), Side::kLeft);
  }
  return pieces;
}

// The same from the end; pieces come last first.
std::vector<std::string_view> SplitAtSpaceBackward(std::string_view text, int64_t limit) {
  std::vector<std::string_view> pieces;
  text = StripSpace(text, Side::kRight);
  while (!text.empty()) {
    if (limit-- == 0) {
      pieces.push_back(text);
      break;
    }
    size_t start = text.size();
    while (start > 0) {
      const size_t previous = PreviousChar(text, start);
      if (IsSpace(DecodeUtf8(text, previous).code_point)) break;
      start = previous;
    }
    pieces.push_back(text.substr(start));
    text = StripSpace(text.substr(0, start), Side::kRight);
  }
  return pieces;
}

std::vector<std::string_view> SplitAt(std::string_view text, std::string_view separator, int64_t limit) {
  std::vector<std::string_view> pieces;
  size_t start = 0;
  for (; limit != 0; --limit) {
    const size_t at = FindText(text, separator, start);
    if (at == std::string_view::npos) break;
    pieces.push_back(text.substr(start, at - start));
    start = at + separator.size();
  }
  pieces.push_back(text.substr(start));
  return pieces;
}

Result<std::vector<std::string_view>> SplitAtBackward(Runtime& rt, std::string_view text, std::string_view separator,
                                                      int64_t limit) {
  std::vector<std::string_view> pieces;
  size_t end = text.size();
  for (; limit != 0; --limit) {
    CACHALOT_ASSIGN_OR_RETURN(const size_t at, FindTextBackward(rt, text.substr(0, end), separator, end));
    if (at == std::string_view::npos) break;
    pieces.push_back(text.substr(at + separator.size(), end - at - separator.size()));
    end = at;
  }
  pieces.push_back(text.substr(0, end));
  return pieces;
}

template <bool backward>
Result<Value> Split(Runtime& rt, CallInput in) {
  const std::string& text = in.self.text();
  CACHALOT_ASSIGN_OR_RETURN(const int64_t limit, IntArgument(in, 1, -1));
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(text.size() * 8));
  CACHALOT_RETURN_IF_ERROR(rt.CanGrow(text.size() * 16));
  std::vector<std::string_view> pieces;
  if (!in.has(0) || in[0].is(Kind::kNone)) {
    pieces = backward ? SplitAtSpaceBackward(text, limit) : SplitAtSpace(text, limit);
  } else {
    CACHALOT_ASSIGN_OR_RETURN(const std::string_view separator, TextArgument(in, 0));
    if (separator.empty()) return Invalid("empty separator");
    if (backward) {
      CACHALOT_ASSIGN_OR_RETURN(pieces, SplitAtBackward(rt, text, separator, limit));
    } else {
      pieces = SplitAt(text, separator, limit);
    }
  }
  if (backward) std::ranges::reverse(pieces);
  std::vector<Value> items;
  for (std::string_view piece : pieces) {
    CACHALOT_RETURN_IF_ERROR(rt.Tick());
    items.push_back(Piece(rt, in.self, piece));
  }
  return rt.List(std::move(items));
}

Result<Value> Lines(Runtime& rt, CallInput in) {
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(in.self.text().size() * 8));
  CACHALOT_RETURN_IF_ERROR(rt.CanGrow(in.self.text().size() * 16));
  std::vector<Value> items;
  for (std::string_view line : SplitLines(in.self.text(), Truth(in[0]))) {
    CACHALOT_RETURN_IF_ERROR(rt.Tick());
    items.push_back(Piece(rt, in.self, line));
  }
  return rt.List(std::move(items));
}

template <bool backward>
Result<Value> Partition(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const std::string_view separator, TextArgument(in, 0));
  if (separator.empty()) return Invalid("empty separator");
  const std::string_view text = in.self.text();
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(text.size()));
  size_t at = FindText(text, separator, 0);
  if (backward) {
    CACHALOT_ASSIGN_OR_RETURN(at, FindTextBackward(rt, text, separator, text.size()));
  }
  const bool found = at != std::string_view::npos;
  const std::string_view head = found ? text.substr(0, at) : backward ? std::string_view() : text;
  const std::string_view tail = found ? text.substr(at + separator.size()) : backward ? text : std::string_view();
  return rt.Tuple(
      {Piece(rt, in.self, head), Piece(rt, in.self, found ? separator : std::string_view()), Piece(rt, in.self, tail)});
}

// Whether `fits` holds for every character; `if_empty` for the empty string.
template <class Fits>
Result<Value> All(Runtime& rt, const CallInput& in, bool if_empty, Fits&& fits) {
  const std::string& text = in.self.text();
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(text.size() * 4));
  if (text.empty()) return Value::Bool(if_empty);
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = DecodeUtf8(text, pos);
    if (!fits(c.code_point)) return Value::Bool(false);
    pos += c.bytes;
  }
  return Value::Bool(true);
}

template <bool (*fits)(char32_t)>
Result<Value> AllAre(Runtime& rt, CallInput in) {
  return All(rt, in, false, fits);
}

Result<Value> IsAllPrintable(Runtime& rt, CallInput in) { return All(rt, in, true, IsPrintable); }
Result<Value> IsAscii(Runtime& rt, CallInput in) {
  return All(rt, in, true, [](char32_t c) { return c < 0x80; });
}

Result<Value> IsIdentifier(Runtime& rt, CallInput in) {
  bool is_first = true;
  return All(rt, in, false,
             [&](char32_t c) { return c == '_' || (std::exchange(is_first, false) ? IsIdStart(c) : IsIdContinue(c)); });
}

Result<Value> IsAllLower(Runtime& rt, CallInput in) { return CallBuiltin(rt, *FindTest("lower"), in.self, {}); }
Result<Value> IsAllUpper(Runtime& rt, CallInput in) { return CallBuiltin(rt, *FindTest("upper"), in.self, {}); }

// Capitals only at the start of words, small letters only inside, and at least one.
Result<Value> IsTitleCased(Runtime& rt, CallInput in) {
  bool in_word = false, any = false;
  CACHALOT_ASSIGN_OR_RETURN(const Value fits, All(rt, in, false, [&](char32_t c) {
                              const bool capital = IsUpper(c) || IsTitle(c);
                              if ((capital && in_word) || (IsLower(c) && !in_word)) return false;
                              in_word = capital || IsLower(c);
                              any = any || in_word;
                              return true;
                            }));
  return Value::Bool(Truth(fits) && any);
}

}  // namespace

std::span<const Builtin> TextSearchMethods() {
  static constexpr Builtin kTable[] = {
      {"find", Find<false>, 1, {"_", "_", "_"}},
      {"rfind", Find<true>, 1, {"_", "_", "_"}},
      {"index", FindOrFail<false>, 1, {"_", "_", "_"}},
      {"rindex", FindOrFail<true>, 1, {"_", "_", "_"}},
      {"count", Count, 1, {"_", "_", "_"}},
      {"startswith", HasAffix<false>, 1, {"_", "_", "_"}},
      {"endswith", HasAffix<true>, 1, {"_", "_", "_"}},
      {"split", Split<false>, 0, {"sep", "maxsplit"}},
      {"rsplit", Split<true>, 0, {"sep", "maxsplit"}},
      {"splitlines", Lines, 0, {"keepends"}},
      {"partition", Partition<false>, 1, {"_"}},
      {"rpartition", Partition<true>, 1, {"_"}},
      {"isalnum", AllAre<IsAlnum>},
      {"isalpha", AllAre<IsAlpha>},
      {"isascii", IsAscii},
      {"isdecimal", AllAre<IsDecimal>},
      {"isdigit", AllAre<IsDigit>},
      {"isidentifier", IsIdentifier},
      {"islower", IsAllLower},
      {"isnumeric", AllAre<IsNumeric>},
      {"isprintable", IsAllPrintable},
      {"isspace", AllAre<IsSpace>},
      {"istitle", IsTitleCased},
      {"isupper", IsAllUpper},
  };
  return kTable;
}

}  // namespace cachalot::text::jinja
