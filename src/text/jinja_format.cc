#include "text/jinja_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/utf8.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace cachalot::text::jinja {
namespace {

// A number taken apart, before padding.
struct NumberParts {
  std::string sign;    // "", "-", "+" or " "
  std::string prefix;  // "0x", ...
  std::string digits;  // those before the point: what grouping applies to
  std::string rest;    // ".5", "e+10", "%", ...
};

std::string Grouped(std::string_view digits, char separator, size_t group) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % group == 0) out.push_back(separator);
    out.push_back(digits[i]);
  }
  return out;
}

Result<std::string> Assemble(Runtime& rt, NumberParts parts, const FormatSpec& spec) {
  const size_t group = spec.type == 'b' || spec.type == 'o' || spec.type == 'x' || spec.type == 'X' ? 4 : 3;
  const bool zero_padded = spec.fill == "0" && spec.align == '=';
  CACHALOT_RETURN_IF_ERROR(rt.CanGrow(static_cast<size_t>(std::max<int64_t>(spec.width, 0)) * 2));
  const auto grouped = [&] { return spec.grouping == 0 ? parts.digits : Grouped(parts.digits, spec.grouping, group); };
  if (zero_padded && spec.grouping != 0) {
    const size_t fixed = parts.sign.size() + parts.prefix.size() + parts.rest.size();
    const auto length = [&](size_t digits) { return fixed + digits + (digits - 1) / group; };
    size_t digits = std::max<size_t>(parts.digits.size(), 1);
    while (static_cast<int64_t>(length(digits)) < spec.width) ++digits;
    parts.digits.insert(0, digits - parts.digits.size(), '0');
  }
  const std::string body = grouped() + parts.rest;
  if (spec.align != '=') return PadText(rt, parts.sign + parts.prefix + body, spec, '>');
  FormatSpec inner = spec;
  inner.align = '>';
  inner.width = spec.width - static_cast<int64_t>(parts.sign.size() + parts.prefix.size());
  CACHALOT_ASSIGN_OR_RETURN(const std::string padded, PadText(rt, body, inner, '>'));
  return parts.sign + parts.prefix + padded;
}

std::string SignText(bool negative, const FormatSpec& spec) {
  if (negative) return "-";
  return spec.sign == '-' ? "" : std::string(1, spec.sign);
}

std::string UnsignedDigits(uint64_t value, char type) {
  switch (type) {
    case 'b': return fmt::format("{:b}", value);
    case 'o': return fmt::format("{:o}", value);
    case 'x': return fmt::format("{:x}", value);
    case 'X': return fmt::format("{:X}", value);
    default: return fmt::format("{}", value);
  }
}

// %#g: as many digits as the precision says, always with a point.
std::string AlternateGeneral(double value, int digits) {
  const std::string scientific = fmt::format("{:#.{}e}", value, digits - 1);
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  if (exponent < -4 || exponent >= digits) return scientific;
  const std::string fixed = fmt::format("{:.{}f}", value, digits - 1 - exponent);
  return fixed.find('.') == std::string::npos ? fixed + "." : fixed;
}

std::string FiniteDigits(double value, const FormatSpec& spec, char kind) {
  const int precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
  switch (kind) {
    case 'e':
      return spec.alternate ? fmt::format("{:#.{}e}", value, precision) : fmt::format("{:.{}e}", value, precision);
    case 'f':
      return spec.alternate ? fmt::format("{:#.{}f}", value, precision) : fmt::format("{:.{}f}", value, precision);
    default: {
      const int digits = precision == 0 ? 1 : precision;
      return spec.alternate ? AlternateGeneral(value, digits) : fmt::format("{:.{}g}", value, digits);
    }
  }
}

// format(value, ".N") without a type: as g, but fixed notation keeps a digit after the point.
std::string GeneralDigits(double value, int64_t precision) {
  const int digits = static_cast<int>(std::max<int64_t>(precision, 1));
  const std::string scientific = fmt::format("{:.{}e}", value, digits - 1);
  const int exponent = std::stoi(scientific.substr(scientific.find('e') + 1));
  if (exponent < -4 || exponent >= digits) return fmt::format("{:.{}g}", value, digits);
  std::string text = fmt::format("{:.{}g}", value, digits);
  if (text.find('.') != std::string::npos) return text;
  // No room for a digit after the point: Python then writes an exponent.
  if (exponent + 1 >= digits) {
    std::string mantissa = fmt::format("{:.{}e}", value, digits - 1);
    const size_t e = mantissa.find('e');
    std::string head = mantissa.substr(0, e);
    if (head.find('.') != std::string::npos) {
      while (head.back() == '0') head.pop_back();
      if (head.back() == '.') head.pop_back();
    }
    return head + mantissa.substr(e);
  }
  return text + ".0";
}

}  // namespace

Result<std::string> PadText(Runtime& rt, std::string_view text, const FormatSpec& spec, char default_align) {
  const size_t chars = CountChars(text);
  if (spec.width <= static_cast<int64_t>(chars)) return std::string(text);
  const size_t missing = static_cast<size_t>(spec.width) - chars;
  if (missing > rt.limits().heap_bytes) return rt.CanGrow(missing);
  CACHALOT_RETURN_IF_ERROR(rt.CanGrow(missing * spec.fill.size()));
  CACHALOT_RETURN_IF_ERROR(rt.TickBytes(missing * spec.fill.size()));
  const char align = spec.align == 0 ? default_align : spec.align;
  const size_t before = align == '>' || align == '=' ? missing : align == '^' ? missing / 2 : 0;
  std::string out;
  for (size_t i = 0; i < before; ++i) out += spec.fill;
  out += text;
  for (size_t i = before; i < missing; ++i) out += spec.fill;
  return out;
}

Result<std::string> FormatInteger(Runtime& rt, int64_t value, const FormatSpec& spec, int64_t min_digits) {
  NumberParts parts;
  const uint64_t magnitude = value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  parts.sign = SignText(value < 0, spec);
  parts.digits = UnsignedDigits(magnitude, spec.type);
  if (spec.alternate && (spec.type == 'b' || spec.type == 'o' || spec.type == 'x' || spec.type == 'X')) {
    parts.prefix = {'0', spec.type};
  }
  if (const int64_t digits = static_cast<int64_t>(parts.digits.size()); digits < min_digits) {
    CACHALOT_RETURN_IF_ERROR(rt.CanGrow(static_cast<size_t>(min_digits)));
    CACHALOT_RETURN_IF_ERROR(rt.TickBytes(static_cast<size_t>(min_digits)));
    parts.digits.insert(0, static_cast<size_t>(min_digits - digits), '0');
  }
  return Assemble(rt, std::move(parts), spec);
}

Result<std::string> FormatFloat(Runtime& rt, double value, const FormatSpec& spec) {
  if (spec.precision > kMaxFormatPrecision) return Invalid("precision too big");
  NumberParts parts;
  parts.sign = SignText(std::signbit(value) && !std::isnan(value), spec);
  const double magnitude = std::fabs(value);
  const char kind = static_cast<char>(std::tolower(static_cast<unsigned char>(spec.type)));
  const bool upper = spec.type != kind;
  std::string text;
  if (!std::isfinite(value)) {
    text = std::isnan(value) ? "nan" : "inf";
    if (kind == '%') text += "%";
  } else if (kind == 0) {
    text = spec.precision < 0 ? FloatRepr(magnitude) : GeneralDigits(magnitude, spec.precision);
  } else if (kind == '%') {
    text = FiniteDigits(magnitude * 100, spec, 'f') + "%";
  } else {
    text = FiniteDigits(magnitude, spec, kind == 'n' ? 'g' : kind);
  }
  if (upper)
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const size_t whole = std::isfinite(value) ? std::min(text.find_first_not_of("0123456789"), text.size()) : 0;
  parts.digits = text.substr(0, whole);
  parts.rest = text.substr(whole);
  return Assemble(rt, std::move(parts), spec);
}

std::string AsciiOnly(std::string_view repr) {
  std::string out;
  for (size_t pos = 0; pos < repr.size();) {
    const Utf8Char c = DecodeUtf8(repr, pos);
    const auto code = static_cast<uint32_t>(c.code_point);
    if (code < 0x80) {
      out.push_back(static_cast<char>(code));
    } else {
      out += EscapedCode(c.code_point);
    }
    pos += c.bytes;
  }
  return out;
}

}  // namespace cachalot::text::jinja
