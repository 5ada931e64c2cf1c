// Python's three ways to format: str % values, str.format and format(value, spec).
// Threads:   as Runtime.
// Ownership: none.
// Invariant: results are Python's; widths and precisions cannot make more text than the budgets allow.
// Cost:      linear in the result.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "text/jinja_runtime.h"

namespace cachalot::text::jinja {

// format % values; `format` is a kStr.
Result<Value> FormatPercent(Runtime& rt, const Value& format, const Value& values);

// format.format(*positional, **keywords); `format` is a kStr.
Result<Value> FormatBraces(Runtime& rt, const Value& format, const Arguments& arguments);

// How one number or string is written.
struct FormatSpec {
  std::string fill = " ";  // one character
  char align = 0;          // '<', '>', '^', '=' (after the sign), or 0: by type
  char sign = '-';         // '-', '+' or ' '
  bool alternate = false;  // 0x, ...
  char grouping = 0;       // ',' or '_'
  int64_t width = 0;
  int64_t precision = -1;  // not given
  char type = 0;           // not given
};

inline constexpr int64_t kMaxFormatPrecision = 1000;

// Pads text to the width.
Result<std::string> PadText(Runtime& rt, std::string_view text, const FormatSpec& spec, char default_align);
// An integer in base 2, 8, 10 or 16 (type b, o, d, x, X) with sign, prefix, grouping and padding; `min_digits` are
// filled up with zeros.
Result<std::string> FormatInteger(Runtime& rt, int64_t value, const FormatSpec& spec, int64_t min_digits);
// A float of type e, f, g or % (either case), or none: as repr, or with a precision much like g.
Result<std::string> FormatFloat(Runtime& rt, double value, const FormatSpec& spec);
// ascii(): a repr without characters above 127.
std::string AsciiOnly(std::string_view repr);

}  // namespace cachalot::text::jinja
