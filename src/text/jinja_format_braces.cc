#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/utf8.h"
#include "text/jinja_format.h"
#include "text/jinja_ops.h"
#include "text/jinja_text.h"
#include "text/jinja_unicode.h"

namespace cachalot::text::jinja {
namespace {

bool AllDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Reads format(value, spec)'s little language.
class SpecReader {
 public:
  explicit SpecReader(std::string_view text) : text_(text) {}

  Result<FormatSpec> Run() {
    FormatSpec spec;
    ReadAlign(&spec);
    if (At(0) == '+' || At(0) == '-' || At(0) == ' ') spec.sign = Take();
    if (At(0) == '#') spec.alternate = Take() != 0;
    if (At(0) == '0') {
      Take();
      if (!has_align_) {
        spec.fill = "0";
        spec.align = '=';
        zero_padded_ = true;
      }
    }
    CACHALOT_ASSIGN_OR_RETURN(spec.width, ReadNumber(0));
    if (At(0) == ',' || At(0) == '_') spec.grouping = Take();
    if (At(0) == '.') {
      Take();
      CACHALOT_ASSIGN_OR_RETURN(spec.precision, ReadNumber(-1));
      if (spec.precision < 0) return Invalid("Format specifier missing precision");
    }
    if (pos_ < text_.size()) spec.type = Take();
    if (pos_ < text_.size()) return Invalid("Invalid format specifier");
    return spec;
  }
  // Whether alignment comes from a leading 0 alone.
  bool zero_padded() const { return zero_padded_; }

 private:
  char At(size_t ahead) const { return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0'; }
  char Take() { return text_[pos_++]; }
  static bool IsAlign(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

  void ReadAlign(FormatSpec* spec) {
    if (text_.empty()) return;
    const uint32_t bytes = DecodeUtf8(text_, 0).bytes;
    if (IsAlign(At(bytes))) {
      spec->fill = std::string(text_.substr(0, bytes));
      spec->align = At(bytes);
      pos_ = bytes + 1;
      has_align_ = true;
    } else if (IsAlign(At(0))) {
      spec->align = Take();
      has_align_ = true;
    }
  }

  Result<int64_t> ReadNumber(int64_t missing) {
    if (At(0) < '0' || At(0) > '9') return missing;
    int64_t number = 0;
    while (At(0) >= '0' && At(0) <= '9') {
      number = number * 10 + (Take() - '0');
      if (number > INT32_MAX) return Invalid("Too many decimal digits in format string");
    }
    return number;
  }

  std::string_view text_;
  size_t pos_ = 0;
  bool has_align_ = false;
  bool zero_padded_ = false;
};

Status UnknownCode(char type, const Value& value) {
  return Invalid(fmt::format("Unknown format code '{}' for object of type '{}'", type, TypeName(value)));
}

Result<std::string> FormatWithSpec(Runtime& rt, const Value& value, std::string_view text) {
  SpecReader reader(text);
  CACHALOT_ASSIGN_OR_RETURN(FormatSpec spec, reader.Run());
  static constexpr std::string_view kFloatTypes = "eEfFgG%n";
  if (value.is(Kind::kStr)) {
    if (spec.type != 0 && spec.type != 's') return UnknownCode(spec.type, value);
    if (spec.sign != '-' || spec.alternate || spec.grouping != 0) {
      return Invalid("Sign, alternate form or grouping not allowed in string format specifier");
    }
    if (spec.align == '=' && !reader.zero_padded()) {
      return Invalid("'=' alignment not allowed in string format specifier");
    }
    if (spec.align == '=') spec.align = '<';
    std::string_view str = value.text();
    if (spec.precision >= 0) str = str.substr(0, CharOffset(str, static_cast<size_t>(spec.precision)));
    return PadText(rt, str, spec, '<');
  }
  if (!value.is_number()) {
    return Invalid(fmt::format("unsupported format string passed to {}.__format__", TypeName(value)));
  }
  const bool is_float_type = spec.type != 0 && kFloatTypes.find(spec.type) != kFloatTypes.npos;
  if (value.is(Kind::kFloat) || (is_float_type && spec.type != 'n')) {
    if (spec.type != 0 && !is_float_type) return UnknownCode(spec.type, value);
    return FormatFloat(rt, value.as_double(), spec);
  }
  if (spec.precision >= 0) return Invalid("Precision not allowed in integer format specifier");
  if (spec.type == 0 || spec.type == 'n') spec.type = 'd';
  if (spec.type == 'c') return Invalid("format code 'c' is not supported");
  if (std::string_view("bdoxX").find(spec.type) == std::string_view::npos) return UnknownCode(spec.type, value);
  return FormatInteger(rt, value.integer(), spec, 0);
}

class BraceFormatter {
 public:
  BraceFormatter(Runtime& rt, const Arguments& arguments, bool is_markup)
      : rt_(rt), arguments_(arguments), is_markup_(is_markup) {}

  Result<std::string> Run(std::string_view format, int levels) {
    if (levels < 0) return Invalid("Max string recursion exceeded");
    CACHALOT_RETURN_IF_ERROR(rt_.TickBytes(format.size()));
    std::string out;
    size_t pos = 0;
    while (pos < format.size()) {
      const char c = format[pos++];
      if (c != '{' && c != '}') {
        out.push_back(c);
      } else if (pos < format.size() && format[pos] == c) {
        out.push_back(c);
        ++pos;
      } else if (c == '}') {
        return Invalid("Single '}' encountered in format string");
      } else {
        CACHALOT_ASSIGN_OR_RETURN(const std::string text, Field(format, &pos, levels));
        out += text;
        CACHALOT_RETURN_IF_ERROR(rt_.CanGrow(out.size()));
      }
    }
    return out;
  }

 private:
  // The field after "{" at *pos; moves past its "}".
  Result<std::string> Field(std::string_view format, size_t* pos, int levels) {
    size_t end = *pos;
    bool in_bracket = false;
    for (; end < format.size(); ++end) {
      const char c = format[end];
      if (c == '{') return Invalid("unexpected '{' in field name");
      if (c == '[') in_bracket = true;
      if (c == ']') in_bracket = false;
      if (!in_bracket && (c == '}' || c == ':' || c == '!')) break;
    }
    if (end >= format.size()) return Invalid("expected '}' before end of string");
    const std::string_view name = format.substr(*pos, end - *pos);
    char conversion = 0;
    if (format[end] == '!') {
      if (end + 2 >= format.size()) return Invalid("unmatched '{' in format spec");
      conversion = format[end + 1];
      end += 2;
      if (format[end] != ':' && format[end] != '}') return Invalid("expected ':' after conversion specifier");
    }
    std::string_view spec;
    if (format[end] == ':') {
      const size_t start = ++end;
      for (int open = 1; end < format.size(); ++end) {
        if (format[end] == '{') ++open;
        if (format[end] == '}' && --open == 0) break;
      }
      if (end >= format.size()) return Invalid("unmatched '{' in format spec");
      spec = format.substr(start, end - start);
    }
    *pos = end + 1;
    CACHALOT_ASSIGN_OR_RETURN(Value value, Lookup(name));
    CACHALOT_ASSIGN_OR_RETURN(value, Convert(std::move(value), conversion));
    CACHALOT_ASSIGN_OR_RETURN(const std::string inner_spec, Run(spec, levels - 1));
    return Write(value, inner_spec);
  }

  Result<Value> First(std::string_view first) {
    if (AllDigits(first)) {
      size_t index = 0;
      const auto read = std::from_chars(first.data(), first.data() + first.size(), index);
      if (read.ec != std::errc() || index >= arguments_.positional.size()) {
        return Invalid("Replacement index out of range for positional args tuple");
      }
      return arguments_.positional[index];
    }
    for (const auto& [name, value] : arguments_.keywords) {
      if (name == first) return value;
    }
    return Invalid(fmt::format("no argument is named {}", StrRepr(first)));
  }

  Result<Value> Lookup(std::string_view name) {
    std::string automatic;
    if (name.empty()) {
      if (is_manual_) return Invalid("cannot switch from manual field specification to automatic field numbering");
      automatic = std::to_string(next_index_++);
      name = automatic;
    } else if (AllDigits(name)) {
      if (next_index_ > 0) {
        return Invalid("cannot switch from manual field specification to automatic field numbering");
      }
      is_manual_ = true;
    }
    size_t end = std::min(name.find_first_of(".["), name.size());
    CACHALOT_ASSIGN_OR_RETURN(Value value, First(name.substr(0, end)));
    while (end < name.size()) {
      if (name[end] == '.') {
        const size_t start = end + 1;
        end = std::min(name.find_first_of(".[", start), name.size());
        if (end == start) return Invalid("Empty attribute in format string");
        CACHALOT_ASSIGN_OR_RETURN(value, GetAttribute(rt_, value, name.substr(start, end - start)));
        continue;
      }
      if (name[end] != '[') return Invalid("Only '.' or '[' may follow ']' in format field specifier");
      const size_t start = end + 1;
      end = name.find(']', start);
      if (end == std::string_view::npos) return Invalid("Missing ']' in format string");
      CACHALOT_ASSIGN_OR_RETURN(value, Element(value, name.substr(start, end - start)));
      ++end;
    }
    return value;
  }

  Result<Value> Element(const Value& value, std::string_view key) {
    if (key.empty()) return Invalid("Empty attribute in format string");
    if (!AllDigits(key)) return GetItem(rt_, value, rt_.Str(std::string(key)));
    int64_t index = 0;
    if (std::from_chars(key.data(), key.data() + key.size(), index).ec != std::errc()) {
      return Invalid("Too many decimal digits in format string");
    }
    return GetItem(rt_, value, Value::Int(index));
  }

  Result<Value> Convert(Value value, char conversion) {
    if (conversion == 0) return value;
    if (conversion == 's') return SoftStr(rt_, value);
    if (conversion != 'r' && conversion != 'a') {
      return Invalid(fmt::format("Unknown conversion specifier {}", conversion));
    }
    CACHALOT_ASSIGN_OR_RETURN(std::string repr, ToRepr(rt_, value));
    return rt_.Str(conversion == 'a' ? AsciiOnly(repr) : std::move(repr));
  }

  Result<std::string> Write(const Value& value, const std::string& spec) {
    const bool is_safe = value.is(Kind::kStr) && value.as<StrObject>()->markup;
    if (spec.empty()) {
      CACHALOT_ASSIGN_OR_RETURN(std::string text, ToText(rt_, value));
      return is_markup_ && !is_safe ? EscapeHtml(text) : std::move(text);
    }
    CACHALOT_ASSIGN_OR_RETURN(std::string text, FormatWithSpec(rt_, value, spec));
    return is_markup_ ? EscapeHtml(text) : std::move(text);
  }

  Runtime& rt_;
  const Arguments& arguments_;
  bool is_markup_;
  bool is_manual_ = false;
  int next_index_ = 0;
};

}  // namespace

Result<Value> FormatBraces(Runtime& rt, const Value& format, const Arguments& arguments) {
  const bool is_markup = format.as<StrObject>()->markup;
  BraceFormatter formatter(rt, arguments, is_markup);
  CACHALOT_ASSIGN_OR_RETURN(std::string text, formatter.Run(format.text(), 2));
  return rt.Str(std::move(text), is_markup);
}

}  // namespace cachalot::text::jinja
