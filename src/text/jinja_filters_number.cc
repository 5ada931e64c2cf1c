#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "text/jinja_builtins.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"

namespace cachalot::text::jinja {
namespace {

Result<Value> Abs(Runtime&, CallInput in) {
  if (in.self.is(Kind::kFloat)) return Value::Float(std::fabs(in.self.number()));
  if (!in.self.is_integral()) return Invalid(fmt::format("bad operand type for abs(): '{}'", TypeName(in.self)));
  if (in.self.integer() < 0) return Negate(in.self);
  return Value::Int(in.self.integer());
}

// Drops the underscores that may stand between two digits; nothing when one stands elsewhere.
std::optional<std::string> WithoutUnderscores(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out.push_back(text[i]);
      continue;
    }
    const auto is_digit = [&](size_t at) {
      return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at]));
    };
    if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) return std::nullopt;
  }
  return out;
}

struct ParsedInt {
  bool ok = false;        // it is a whole number
  bool overflow = false;  // it is one that does not fit
  int64_t value = 0;
};

// The base that a prefix such as 0x names, or 0.
int PrefixBase(std::string_view digits) {
  if (digits.size() < 2 || digits[0] != '0') return 0;
  switch (digits[1]) {
    case 'b':
    case 'B': return 2;
    case 'o':
    case 'O': return 8;
    case 'x':
    case 'X': return 16;
    default: return 0;
  }
}

// int(text, base) of Python, for ASCII digits.
ParsedInt ParseInt(std::string_view text, int64_t base) {
  text = StripSpace(text, Side::kBoth);
  bool negative = false;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (const int prefix = PrefixBase(text); prefix != 0 && (base == prefix || base == 0)) {
    text.remove_prefix(2);
    if (!text.empty() && text[0] == '_') text.remove_prefix(1);
    base = prefix;
  } else if (base == 0) {
    base = 10;
    const bool all_zero = text.find_first_not_of("0_") == text.npos;
    if (text.size() > 1 && text[0] == '0' && !all_zero) return {};
  }
  if (base < 2 || base > 36) return {};
  const std::optional<std::string> digits = WithoutUnderscores(text);
  if (!digits || digits->empty() || (*digits)[0] == '-') return {};
  const std::string signed_digits = negative ? "-" + *digits : *digits;
  const char* end = signed_digits.data() + signed_digits.size();
  ParsedInt result;
  const auto read = std::from_chars(signed_digits.data(), end, result.value, static_cast<int>(base));
  result.ok = read.ptr == end && read.ec != std::errc::invalid_argument;
  result.overflow = read.ec == std::errc::result_out_of_range;
  return result;
}

bool IsFloatText(std::string_view text) {
  const auto digits = [&](size_t* at) {
    const size_t start = *at;
    while (*at < text.size() && text[*at] >= '0' && text[*at] <= '9') ++*at;
    return *at > start;
  };
  size_t at = 0;
  const bool whole = digits(&at);
  bool fraction = false;
  if (at < text.size() && text[at] == '.') {
    ++at;
    fraction = digits(&at);
  }
  if (!whole && !fraction) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (!digits(&at)) return false;
  }
  return at == text.size();
}

// float(text) of Python.
std::optional<double> ParseFloat(std::string_view text) {
  text = StripSpace(text, Side::kBoth);
  const std::optional<std::string> plain = WithoutUnderscores(text);
  if (!plain) return std::nullopt;
  std::string_view body = *plain;
  double sign = 1;
  if (!body.empty() && (body[0] == '+' || body[0] == '-')) {
    sign = body[0] == '-' ? -1 : 1;
    body.remove_prefix(1);
  }
  std::string lower(body);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (lower == "inf" || lower == "infinity") return sign * HUGE_VAL;
  if (lower == "nan") return std::nan("");
  if (!IsFloatText(lower)) return std::nullopt;
  return sign * std::strtod(lower.c_str(), nullptr);
}

// int(value) for a float: nothing when it is not a number or infinite.
Result<Value> TruncatedFloat(double value) {
  if (!(std::fabs(value) < 0x1p63)) return Invalid("cannot convert float to a 64-bit integer");
  return Value::Int(static_cast<int64_t>(value));
}

Result<Value> Int(Runtime& rt, CallInput in) {
  CACHALOT_ASSIGN_OR_RETURN(const int64_t base, IntArgument(in, 1, 10));
  const Value fallback = in.has(0) ? in[0] : Value::Int(0);
  if (in.self.is(Kind::kUndefined)) return UndefinedError(in.self);
  if (in.self.is_integral()) return Value::Int(in.self.integer());
  if (in.self.is(Kind::kFloat)) {
    if (std::isnan(in.self.number())) return fallback;
    return TruncatedFloat(in.self.number());
  }
  if (!in.self.is(Kind::kStr)) return fallback;
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(in.self.text().size() * 4));
  if (const ParsedInt parsed = ParseInt(in.self.text(), base); parsed.ok) {
    if (parsed.overflow) return Invalid("the integer does not fit in 64 bits");
    return Value::Int(parsed.value);
  }
  const std::optional<double> number = ParseFloat(in.self.text());
  if (!number || !std::isfinite(*number)) return fallback;
  return TruncatedFloat(*number);
}

Result<Value> Float(Runtime& rt, CallInput in) {
  const Value fallback = in.has(0) ? in[0] : Value::Float(0);
  if (in.self.is(Kind::kUndefined)) return UndefinedError(in.self);
  if (in.self.is_number()) return Value::Float(in.self.as_double());
  if (!in.self.is(Kind::kStr)) return fallback;
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(in.self.text().size() * 4));
  const std::optional<double> number = ParseFloat(in.self.text());
  return number ? Value::Float(*number) : fallback;
}

// Rounds a decimal number, given as digits with a point, half to even at `places` after the point (may be < 0).
std::string RoundDecimal(std::string text, int places) {
  const size_t point = text.find('.');
  const int keep = static_cast<int>(point) + places;  // digits kept, counted without the point
  std::string digits = text.substr(0, point) + text.substr(point + 1);
  if (keep < 0) return "0";
  if (keep >= static_cast<int>(digits.size())) return text;
  const std::string_view dropped = std::string_view(digits).substr(static_cast<size_t>(keep));
  const bool tie = dropped[0] == '5' && dropped.find_first_not_of('0', 1) == dropped.npos;
  const bool odd = keep > 0 && (digits[static_cast<size_t>(keep) - 1] - '0') % 2 == 1;
  bool up = tie ? odd : dropped[0] >= '5';
  std::string kept = digits.substr(0, static_cast<size_t>(keep));
  for (size_t i = kept.size(); up && i-- > 0;) {
    up = kept[i] == '9';
    kept[i] = up ? '0' : static_cast<char>(kept[i] + 1);
  }
  if (up) kept.insert(0, 1, '1');
  return fmt::format("{}e{}", kept.empty() ? "0" : kept, -places);
}

Result<Value> RoundFloat(double value, int64_t places) {
  if (!std::isfinite(value) || value == 0 || places > 323) return Value::Float(value);
  if (places < -308) return Value::Float(std::copysign(0.0, value));
  // Every double has an exact decimal form of at most 1,074 places.
  const std::string exact = fmt::format("{:.1074f}", std::fabs(value));
  const double rounded = std::strtod(RoundDecimal(exact, static_cast<int>(places)).c_str(), nullptr);
  if (std::isinf(rounded)) return Invalid("rounded value too large to represent");
  return Value::Float(std::copysign(rounded, value));
}

Result<Value> RoundInt(int64_t value, int64_t places) {
  if (places >= 0) return Value::Int(value);
  if (places < -18) return Value::Int(0);
  int64_t unit = 1;
  for (int64_t i = 0; i < -places; ++i) unit *= 10;
  int64_t quotient = value / unit;
  const int64_t rest = std::abs(value % unit);
  const int64_t half = unit / 2;
  if (rest > half || (rest == half && quotient % 2 != 0)) quotient += value < 0 ? -1 : 1;
  int64_t result = 0;
  if (__builtin_mul_overflow(quotient, unit, &result)) return Invalid("integer result does not fit in 64 bits");
  return Value::Int(result);
}

Result<Value> Round(Runtime& rt, CallInput in) {
  const std::string_view method = in.has(1) && in[1].is(Kind::kStr) ? std::string_view(in[1].text()) : "common";
  const bool bad_method = in.has(1) && !in[1].is(Kind::kStr);
  if (bad_method || (method != "common" && method != "ceil" && method != "floor")) {
    return Invalid("method must be common, ceil or floor");
  }
  if (!in.self.is_number()) {
    if (in.self.is(Kind::kUndefined) && method != "common") return UndefinedError(in.self);
    return Invalid(fmt::format("type {} doesn't define __round__ method", TypeName(in.self)));
  }
  if (method == "common") {
    if (in.has(0) && in[0].is(Kind::kNone)) {  // round(value, None) gives an int
      if (in.self.is_integral()) return Value::Int(in.self.integer());
      return TruncatedFloat(std::nearbyint(in.self.number()));
    }
    CACHALOT_ASSIGN_OR_RETURN(const int64_t places, IntArgument(in, 0, 0));
    return in.self.is_integral() ? RoundInt(in.self.integer(), places) : RoundFloat(in.self.number(), places);
  }
  const Value precision = in.has(0) ? in[0] : Value::Int(0);
  CACHALOT_ASSIGN_OR_RETURN(const Value scale, Arithmetic(rt, Op::kPow, Value::Int(10), precision));
  CACHALOT_ASSIGN_OR_RETURN(const Value scaled, Arithmetic(rt, Op::kMul, in.self, scale));
  Value whole = scaled;
  if (scaled.is(Kind::kFloat)) {
    const double rounded = method == "ceil" ? std::ceil(scaled.number()) : std::floor(scaled.number());
    CACHALOT_ASSIGN_OR_RETURN(whole, TruncatedFloat(rounded));
  }
  return Arithmetic(rt, Op::kDiv, whole, scale);
}

Result<Value> FileSizeFormat(Runtime& rt, CallInput in) {
  std::optional<double> bytes;
  if (in.self.is_number()) bytes = in.self.as_double();
  if (in.self.is(Kind::kStr)) bytes = ParseFloat(in.self.text());
  if (!bytes) return Invalid(fmt::format("could not convert {} to float", TypeName(in.self)));
  const bool binary = Truth(in[0]);
  const double base = binary ? 1024 : 1000;
  if (*bytes == 1) return rt.Str("1 Byte");
  if (*bytes < base) {
    CACHALOT_ASSIGN_OR_RETURN(const Value whole, TruncatedFloat(*bytes));
    return rt.Str(fmt::format("{} Bytes", whole.integer()));
  }
  static constexpr std::string_view kPrefixes = "kMGTPEZY";
  double unit = base;
  for (size_t i = 0;; ++i) {
    unit *= base;
    if (*bytes < unit || i + 1 == kPrefixes.size()) {
      const char prefix = binary && i == 0 ? 'K' : kPrefixes[i];
      return rt.Str(fmt::format("{:.1f} {}{}B", base * *bytes / unit, prefix, binary ? "i" : ""));
    }
  }
}

}  // namespace

std::span<const Builtin> NumberFilters() {
  static constexpr Builtin kTable[] = {
      {"abs", Abs},
      {"int", Int, 0, {"default", "base"}},
      {"float", Float, 0, {"default"}},
      {"round", Round, 0, {"precision", "method"}},
      {"filesizeformat", FileSizeFormat, 0, {"binary"}},
  };
  return kTable;
}

}  // namespace cachalot::text::jinja
