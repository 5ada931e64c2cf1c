#include <fmt/format.h>

#include <cmath>

#include "base/utf8.h"
#include "text/jinja_format.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace cachalot::text::jinja {
namespace {

class PercentFormatter {
 public:
  PercentFormatter(Runtime& rt, const Value& format, const Value& values)
      : rt_(rt), format_(format.text()), is_markup_(format.as<StrObject>()->markup), values_(values) {
    is_mapping_ =
        values.is(Kind::kDict) || values.is(Kind::kList) || values.is(Kind::kUndefined) || values.is(Kind::kRange);
  }

  Result<Value> Run() {
    CACHALOT_RETURN_IF_ERROR(rt_.TickBytes(format_.size()));
    while (pos_ < format_.size()) {
      const size_t percent = std::min(format_.find('%', pos_), format_.size());
      out_ += format_.substr(pos_, percent - pos_);
      pos_ = percent + 1;
      if (percent == format_.size()) break;
      CACHALOT_RETURN_IF_ERROR(Conversion());
      CACHALOT_RETURN_IF_ERROR(rt_.CanGrow(out_.size()));
    }
    if (!AllUsed()) return Invalid("not all arguments converted during string formatting");
    return rt_.Str(std::move(out_), is_markup_);
  }

 private:
  bool AllUsed() const {
    if (is_mapping_) return true;
    return values_.is(Kind::kTuple) ? used_ >= values_.items().size() : used_ > 0;
  }

  Result<Value> NextValue() {
    if (!keyed_.missing()) return keyed_;
    if (values_.is(Kind::kTuple)) {
      if (used_ < values_.items().size()) return values_.items()[used_++];
    } else if (used_ == 0) {
      ++used_;
      return values_;
    }
    return Invalid("not enough arguments for format string");
  }

  Status ReadKey() {
    keyed_ = Value();
    if (Peek() != '(') return OkStatus();
    size_t end = ++pos_;
    for (int open = 1; end < format_.size(); ++end) {
      if (format_[end] == '(') ++open;
      if (format_[end] == ')' && --open == 0) break;
    }
    if (end >= format_.size()) return Invalid("incomplete format key");
    if (!is_mapping_) return Invalid("format requires a mapping");
    const std::string_view key = format_.substr(pos_, end - pos_);
    pos_ = end + 1;
    if (values_.is(Kind::kUndefined)) return UndefinedError(values_);
    const Value* found = values_.is(Kind::kDict) ? values_.dict().FindText(key) : nullptr;
    if (found == nullptr) return Invalid(fmt::format("the values have no key {}", StrRepr(key)));
    keyed_ = *found;
    return OkStatus();
  }

  char Peek() const { return pos_ < format_.size() ? format_[pos_] : '\0'; }

  // A number in the format, or the next value where it says '*'.
  Result<int64_t> ReadNumber() {
    if (Peek() == '*') {
      ++pos_;
      CACHALOT_ASSIGN_OR_RETURN(const Value value, NextValue());
      if (!value.is_integral()) return Invalid("* wants int");
      return value.integer();
    }
    int64_t number = 0;
    while (Peek() >= '0' && Peek() <= '9') {
      number = number * 10 + (format_[pos_++] - '0');
      if (number > INT32_MAX) return Invalid("width or precision too big");
    }
    return number;
  }

  Result<FormatSpec> ReadSpec() {
    FormatSpec spec;
    bool left = false, zero = false;
    for (;; ++pos_) {
      const char c = Peek();
      if (c == '-')
        left = true;
      else if (c == '+')
        spec.sign = '+';
      else if (c == ' ')
        spec.sign = spec.sign == '+' ? '+' : ' ';
      else if (c == '#')
        spec.alternate = true;
      else if (c == '0')
        zero = true;
      else
        break;
    }
    CACHALOT_ASSIGN_OR_RETURN(spec.width, ReadNumber());
    if (spec.width < 0) {
      left = true;
      spec.width = spec.width == INT64_MIN ? INT64_MAX : -spec.width;
    }
    if (Peek() == '.') {
      ++pos_;
      CACHALOT_ASSIGN_OR_RETURN(spec.precision, ReadNumber());
      spec.precision = std::max<int64_t>(spec.precision, 0);
    }
    while (Peek() == 'h' || Peek() == 'l' || Peek() == 'L') ++pos_;
    spec.align = left ? '<' : zero ? '=' : '>';
    if (zero && !left) spec.fill = "0";
    return spec;
  }

  Status Conversion() {
    if (Peek() == '%') {
      ++pos_;
      out_ += '%';
      return OkStatus();
    }
    CACHALOT_RETURN_IF_ERROR(ReadKey());
    CACHALOT_ASSIGN_OR_RETURN(FormatSpec spec, ReadSpec());
    if (pos_ >= format_.size()) return Invalid("incomplete format");
    const Utf8Char type = DecodeUtf8(format_, pos_);
    pos_ += type.bytes;
    if (type.code_point == '%') {
      out_ += '%';
      return OkStatus();
    }
    CACHALOT_ASSIGN_OR_RETURN(const Value value, NextValue());
    spec.type = type.code_point < 0x80 ? static_cast<char>(type.code_point) : '\0';
    CACHALOT_ASSIGN_OR_RETURN(const std::string text, Format(value, spec));
    out_ += text;
    return OkStatus();
  }

  Result<std::string> Format(const Value& value, FormatSpec spec) {
    switch (spec.type) {
      case 's':
      case 'r':
      case 'a': return FormatText(value, spec);
      case 'c': return FormatChar(value, spec);
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X': return FormatWhole(value, spec);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': {
        if (value.is(Kind::kUndefined)) return UndefinedError(value);
        if (!value.is_number()) return Invalid(fmt::format("must be real number, not {}", TypeName(value)));
        return FormatFloat(rt_, value.as_double(), spec);
      }
      default: return Invalid("unsupported format character");
    }
  }

  Result<std::string> FormatText(const Value& value, FormatSpec spec) {
    CACHALOT_ASSIGN_OR_RETURN(std::string text, spec.type == 's' ? ToText(rt_, value) : ToRepr(rt_, value));
    if (spec.type == 'a') text = AsciiOnly(text);
    const bool is_safe = spec.type == 's' && value.is(Kind::kStr) && value.as<StrObject>()->markup;
    if (is_markup_ && !is_safe) text = EscapeHtml(text);
    if (spec.precision >= 0) text.resize(CharOffset(text, static_cast<size_t>(spec.precision)));
    if (spec.align == '=') spec.align = '>';
    spec.fill = " ";
    return PadText(rt_, text, spec, '>');
  }

  Result<std::string> FormatChar(const Value& value, FormatSpec spec) {
    std::string text;
    if (value.is(Kind::kStr) && value.as<StrObject>()->chars() == 1) {
      text = value.text();
    } else if (value.is_integral()) {
      const int64_t code = value.integer();
      if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
        return Invalid("%c arg not in range(0x110000)");
      }
      AppendUtf8(&text, static_cast<char32_t>(code));
    } else {
      return Invalid("%c requires int or char");
    }
    if (spec.align == '=') spec.align = '>';
    spec.fill = " ";
    return PadText(rt_, text, spec, '>');
  }

  Result<std::string> FormatWhole(const Value& value, FormatSpec spec) {
    const bool is_decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
    if (value.is(Kind::kUndefined)) return UndefinedError(value);
    if (!value.is_number() || (!is_decimal && !value.is_integral())) {
      return Invalid(fmt::format("%{} format: {} is required, not {}", spec.type,
                                 is_decimal ? "a real number" : "an integer", TypeName(value)));
    }
    int64_t whole = 0;
    if (value.is_integral()) {
      whole = value.integer();
    } else if (std::fabs(value.number()) < 0x1p63) {
      whole = static_cast<int64_t>(value.number());
    } else {
      return Invalid("cannot convert float to a 64-bit integer");
    }
    if (is_decimal) spec.type = 'd';
    return FormatInteger(rt_, whole, spec, spec.precision);
  }

  Runtime& rt_;
  std::string_view format_;
  bool is_markup_;
  const Value& values_;
  bool is_mapping_;
  size_t used_ = 0;
  size_t pos_ = 0;
  Value keyed_;
  std::string out_;
};

}  // namespace

Result<Value> FormatPercent(Runtime& rt, const Value& format, const Value& values) {
  return PercentFormatter(rt, format, values).Run();
}

}  // namespace cachalot::text::jinja
