// Searching, stripping, splitting and writing strings the way Python's str does.
// Threads:   pure functions, or as Runtime.
// Ownership: views point into the arguments.
// Invariant: positions are byte offsets at character boundaries.
// Cost:      linear in the text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/jinja_runtime.h"

namespace cachalot::text::jinja {

// Offset of the first `needle` at or after `from`, or npos; linear for any input.
size_t FindText(std::string_view text, std::string_view needle, size_t from);
// Offset of the last `needle` that ends at or before `end`, or npos. Pays for its steps.
Result<size_t> FindTextBackward(Runtime& rt, std::string_view text, std::string_view needle, size_t end);

enum class Side : uint8_t { kLeft, kRight, kBoth };
// Without whitespace, or without the characters of `chars`.
std::string_view StripSpace(std::string_view text, Side side);
std::string_view StripChars(std::string_view text, std::string_view chars, Side side);

// str.splitlines. With `keep_ends` each line has its line break.
std::vector<std::string_view> SplitLines(std::string_view text, bool keep_ends);

// &, <, >, ' and " as HTML entities.
std::string EscapeHtml(std::string_view text);

// A float as Python writes it: the shortest digits that read back to it.
std::string FloatRepr(double value);
// A string in quotes, escaped as Python's repr does.
std::string StrRepr(std::string_view text);

// str(value), as `~` and printing do, and repr(value).
Result<std::string> ToText(Runtime& rt, const Value& value);
Result<std::string> ToRepr(Runtime& rt, const Value& value);
// str(value) as a value; strings stay as they are, HTML-safe ones too.
Result<Value> SoftStr(Runtime& rt, const Value& value);

}  // namespace cachalot::text::jinja
