#include "text/jinja_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/hex.h"
#include "base/utf8.h"
#include "text/jinja_unicode.h"

namespace cachalot::text::jinja {
namespace {

bool IsAsciiDigit(char c) { return c >= '0' && c <= '9'; }

std::string NormalizeNewlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out.push_back(source[i]);
      continue;
    }
    out.push_back('\n');
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

// Decodes the escapes of a string literal as Python does. Empty, with `error` set, when one is malformed.
class StringUnescaper {
 public:
  explicit StringUnescaper(std::string_view body) : body_(body) {}

  std::optional<std::string> Run() {
    while (pos_ < body_.size()) {
      const char c = body_[pos_++];
      if (c != '\\' || pos_ == body_.size()) {
        out_.push_back(c);
      } else if (!Escape()) {
        return std::nullopt;
      }
    }
    return std::move(out_);
  }
  const char* error() const { return error_; }

 private:
  bool Fail(const char* error) {
    error_ = error;
    return false;
  }

  bool Escape() {
    static constexpr std::string_view kFrom = "\\'\"abfnrtv";
    static constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
    const char c = body_[pos_];
    if (const size_t simple = kFrom.find(c); simple != std::string_view::npos) {
      out_.push_back(kTo[simple]);
      ++pos_;
      return true;
    }
    if (c == '\n') {
      ++pos_;
      return true;
    }
    if (c >= '0' && c <= '7') return Octal();
    if (c == 'x') return Hex(2);
    if (c == 'u') return Hex(4);
    if (c == 'U') return Hex(8);
    if (c == 'N') return Fail("named characters (\\N) are not supported");
    out_.push_back('\\');
    if (static_cast<unsigned char>(c) < 0x80) return true;
    // Python escapes what is not ASCII first, and the backslash then eats that escape's own.
    const Utf8Char character = DecodeUtf8(body_, pos_);
    out_ += EscapedCode(character.code_point).substr(1);
    pos_ += character.bytes;
    return true;
  }

  bool Octal() {
    char32_t code = 0;
    for (int i = 0; i < 3 && pos_ < body_.size() && body_[pos_] >= '0' && body_[pos_] <= '7'; ++i) {
      code = code * 8 + static_cast<char32_t>(body_[pos_++] - '0');
    }
    AppendUtf8(&out_, code);
    return true;
  }

  bool Hex(size_t digits) {
    ++pos_;
    if (body_.size() - pos_ < digits) return Fail("truncated escape in a string");
    uint64_t code = 0;
    for (size_t i = 0; i < digits; ++i) {
      const int value = HexValue(body_[pos_ + i]);
      if (value < 0) return Fail("truncated escape in a string");
      code = code * 16 + static_cast<uint64_t>(value);
    }
    if (code > 0x10FFFF) return Fail("illegal Unicode character");
    if (code >= 0xD800 && code <= 0xDFFF) return Fail("surrogates in a string are not supported");
    AppendUtf8(&out_, static_cast<char32_t>(code));
    pos_ += digits;
    return true;
  }

  std::string_view body_;
  size_t pos_ = 0;
  std::string out_;
  const char* error_ = nullptr;
};

class Lexer {
 public:
  explicit Lexer(std::string_view source) : owned_(NormalizeNewlines(source)), source_(owned_) {}

  std::vector<Token> Run() {
    while (pos_ < source_.size() && !failed_) Root();
    if (!failed_) Add(TokenType::kEnd, line_, {});
    return std::move(tokens_);
  }

 private:
  char At(size_t pos) const { return pos < source_.size() ? source_[pos] : '\0'; }
  bool StartsWith(std::string_view text) const { return source_.substr(pos_).starts_with(text); }

  Token& Add(TokenType type, int line, std::string text) {
    tokens_.push_back(Token{.type = type, .line = line, .text = std::move(text)});
    return tokens_.back();
  }
  void Fail(std::string message) {
    Add(TokenType::kError, line_, std::move(message));
    failed_ = true;
  }
  // Moves to `end`, counting the lines passed.
  void Advance(size_t end) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(pos_),
                                         source_.begin() + static_cast<ptrdiff_t>(end), '\n'));
    pos_ = end;
    line_starting_ = end > 0 && source_[end - 1] == '\n';
  }
  size_t SkipSpace(size_t pos) const {
    while (pos < source_.size()) {
      const Utf8Char c = DecodeUtf8(source_, pos);
      if (!IsSpace(c.code_point)) break;
      pos += c.bytes;
    }
    return pos;
  }
  static std::string_view StripRight(std::string_view text) {
    while (!text.empty()) {
      const size_t last = PreviousChar(text, text.size());
      if (!IsSpace(DecodeUtf8(text, last).code_point)) break;
      text = text.substr(0, last);
    }
    return text;
  }

  // Position of the next "{{", "{%" or "{#".
  size_t FindTag() const {
    for (size_t at = source_.find('{', pos_); at != std::string_view::npos; at = source_.find('{', at + 1)) {
      const char kind = At(at + 1);
      if (kind == '{' || kind == '%' || kind == '#') return at;
    }
    return std::string_view::npos;
  }

  // The end of "{%- raw %}" that starts at `at`, if that is what stands there.
  std::optional<size_t> RawTagEnd(size_t at) const {
    if (At(at + 1) != '%') return std::nullopt;
    size_t pos = at + 2;
    if (At(pos) == '-' || At(pos) == '+') ++pos;
    pos = SkipSpace(pos);
    if (source_.substr(pos, 3) != "raw") return std::nullopt;
    pos = SkipSpace(pos + 3);
    if (source_.substr(pos, 3) == "-%}") return SkipSpace(pos + 3);
    if (source_.substr(pos, 2) == "%}") return pos + 2;
    return std::nullopt;
  }

  // The text before a tag whose sign is '-', '+' or neither, less the space that belongs to the tag.
  std::string_view TextBeforeTag(std::string_view text, char sign, bool is_variable) const {
    if (sign == '-') return StripRight(text);
    if (sign == '+' || is_variable) return text;
    const size_t newline = text.rfind('\n');
    const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    if (line == 0 && !line_starting_) return text;
    return StripRight(text.substr(line)).empty() ? text.substr(0, line) : text;
  }

  void AddData(std::string_view text) {
    if (!text.empty()) Add(TokenType::kData, line_, std::string(text));
  }

  void Root() {
    const size_t at = FindTag();
    if (at == std::string_view::npos) {
      AddData(source_.substr(pos_));
      Advance(source_.size());
      return;
    }
    const char kind = At(at + 1);
    const char sign = At(at + 2);
    const bool has_sign = sign == '-' || sign == '+';
    AddData(TextBeforeTag(source_.substr(pos_, at - pos_), sign, kind == '{'));
    if (const std::optional<size_t> raw = RawTagEnd(at)) {
      Advance(*raw);
      Raw();
      return;
    }
    Advance(at);
    const int line = line_;
    Advance(at + (has_sign ? 3 : 2));
    if (kind == '#') {
      Comment();
    } else {
      Add(kind == '{' ? TokenType::kVariableBegin : TokenType::kBlockBegin, line, {});
      Tag(kind == '{');
    }
  }

  // Where a tag that ends with `close` ("%}" or "#}") at `at` really ends: one line break after it is dropped
  // unless `sign` is '+', all space if it is '-'.
  size_t TagEnd(size_t at, char sign) const {
    const size_t end = at + 2;
    if (sign == '-') return SkipSpace(end);
    if (sign != '+' && At(end) == '\n') return end + 1;
    return end;
  }

  void Comment() {
    const size_t close = source_.find("#}", pos_);
    if (close == std::string_view::npos) {
      if (pos_ < source_.size()) Fail("Missing end of comment tag");
      return;
    }
    const char sign = close > pos_ ? source_[close - 1] : '\0';
    Advance(TagEnd(close, sign));
  }

  void Raw() {
    for (size_t at = source_.find("{%", pos_); at != std::string_view::npos; at = source_.find("{%", at + 1)) {
      size_t pos = at + 2;
      const char sign = At(pos);
      if (sign == '-' || sign == '+') ++pos;
      pos = SkipSpace(pos);
      if (source_.substr(pos, 6) != "endraw") continue;
      pos = SkipSpace(pos + 6);
      const char end_sign = At(pos);
      if (end_sign == '-' || end_sign == '+') ++pos;
      if (source_.substr(pos, 2) != "%}") continue;
      AddData(TextBeforeTag(source_.substr(pos_, at - pos_), sign, false));
      Advance(TagEnd(pos, end_sign));
      return;
    }
    if (pos_ < source_.size()) Fail("Missing end of raw directive");
  }

  // Reads tokens until the end of a "{{" or "{%" tag.
  void Tag(bool is_variable) {
    std::string open;  // brackets that are open, innermost last
    while (!failed_) {
      if (open.empty() && EndTag(is_variable)) return;
      if (pos_ >= source_.size()) return;
      const size_t space = SkipSpace(pos_);
      if (space > pos_) {
        Advance(space);
        continue;
      }
      Lexeme(&open);
    }
  }

  bool EndTag(bool is_variable) {
    const std::string_view close = is_variable ? "}}" : "%}";
    const char c = At(pos_);
    const bool has_sign = c == '-' || (c == '+' && !is_variable);
    const size_t at = pos_ + (has_sign ? 1 : 0);
    if (source_.substr(at, 2) != close) return false;
    Add(is_variable ? TokenType::kVariableEnd : TokenType::kBlockEnd, line_, {});
    if (is_variable) {
      Advance(has_sign ? SkipSpace(at + 2) : at + 2);
    } else {
      Advance(TagEnd(at, c));
    }
    return true;
  }

  void Lexeme(std::string* open) {
    const char c = source_[pos_];
    if (IsAsciiDigit(c)) {
      Number();
    } else if (c == '"' || c == '\'') {
      String(c);
    } else if (const size_t end = NameEnd(); end > pos_) {
      Name(end);
    } else {
      Operator(open);
    }
  }

  // digits, possibly with single underscores between them; returns the end, or `pos` when there are none.
  size_t Digits(size_t pos) const {
    if (!IsAsciiDigit(At(pos))) return pos;
    while (IsAsciiDigit(At(pos)) || (At(pos) == '_' && IsAsciiDigit(At(pos + 1)))) ++pos;
    return pos;
  }

  // The end of a float that starts here, or pos_.
  size_t FloatEnd() const {
    if (pos_ > 0 && source_[pos_ - 1] == '.') return pos_;
    size_t end = Digits(pos_);
    bool is_float = false;
    if (At(end) == '.' && IsAsciiDigit(At(end + 1))) {
      end = Digits(end + 1);
      is_float = true;
    }
    if (At(end) == 'e' || At(end) == 'E') {
      const size_t digits = end + (At(end + 1) == '+' || At(end + 1) == '-' ? 2 : 1);
      if (IsAsciiDigit(At(digits))) return Digits(digits);
    }
    return is_float ? end : pos_;
  }

  // The end of an integer that starts here, and its base.
  std::pair<size_t, int> IntegerEnd() const {
    const auto based = [&](int base, std::string_view allowed) -> std::pair<size_t, int> {
      size_t end = pos_ + 2;
      const auto fits = [&](size_t at) { return at < source_.size() && allowed.find(source_[at]) != allowed.npos; };
      while (fits(end) || (At(end) == '_' && fits(end + 1))) ++end;
      return {end > pos_ + 2 ? end : pos_ + 1, end > pos_ + 2 ? base : 10};
    };
    if (source_[pos_] == '0') {
      const char kind = At(pos_ + 1);
      if (kind == 'b' || kind == 'B') return based(2, "01");
      if (kind == 'o' || kind == 'O') return based(8, "01234567");
      if (kind == 'x' || kind == 'X') return based(16, "0123456789abcdefABCDEF");
      size_t end = pos_ + 1;
      while (At(end) == '0' || (At(end) == '_' && At(end + 1) == '0')) ++end;
      return {end, 10};
    }
    return {Digits(pos_), 10};
  }

  void Number() {
    if (const size_t end = FloatEnd(); end > pos_) {
      std::string digits(source_.substr(pos_, end - pos_));
      std::erase(digits, '_');
      Add(TokenType::kFloat, line_, digits).number = std::strtod(digits.c_str(), nullptr);
      Advance(end);
      return;
    }
    const auto [end, base] = IntegerEnd();
    std::string digits(source_.substr(pos_, end - pos_));
    std::erase(digits, '_');
    const char* first = digits.data() + (base == 10 ? 0 : 2);
    int64_t value = 0;
    if (std::from_chars(first, digits.data() + digits.size(), value, base).ec != std::errc()) {
      Fail(fmt::format("integer {} does not fit in 64 bits", digits));
      return;
    }
    Add(TokenType::kInteger, line_, digits).integer = value;
    Advance(end);
  }

  void String(char quote) {
    size_t end = pos_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) {
      Fail(fmt::format("unexpected char {} at {}: the string has no end", quote == '"' ? "'\"'" : "\"'\"", pos_));
      return;
    }
    StringUnescaper unescaper(source_.substr(pos_ + 1, end - pos_ - 1));
    std::optional<std::string> value = unescaper.Run();
    if (!value) {
      Fail(unescaper.error());
      return;
    }
    Add(TokenType::kString, line_, *std::move(value));
    Advance(end + 1);
  }

  size_t NameEnd() const {
    size_t pos = pos_;
    while (pos < source_.size()) {
      const Utf8Char c = DecodeUtf8(source_, pos);
      if (c.code_point != '_' && !IsAlnum(c.code_point) && !IsIdContinue(c.code_point)) break;
      pos += c.bytes;
    }
    return pos;
  }

  void Name(size_t end) {
    for (size_t pos = pos_; pos < end;) {
      const Utf8Char c = DecodeUtf8(source_, pos);
      const bool fits = c.code_point == '_' || (pos == pos_ ? IsIdStart(c.code_point) : IsIdContinue(c.code_point));
      if (!fits) {
        Fail("Invalid character in identifier");
        return;
      }
      pos += c.bytes;
    }
    Add(TokenType::kName, line_, std::string(source_.substr(pos_, end - pos_)));
    Advance(end);
  }

  void Operator(std::string* open) {
    static constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
    static constexpr std::string_view kOne = "+-/*%~[](){}><=.:|,;";
    std::string_view found;
    for (std::string_view two : kTwo) {
      if (StartsWith(two)) found = source_.substr(pos_, 2);
    }
    if (found.empty() && kOne.find(source_[pos_]) != kOne.npos) found = source_.substr(pos_, 1);
    if (found.empty()) {
      const uint32_t bytes = DecodeUtf8(source_, pos_).bytes;
      Fail(fmt::format("unexpected char '{}' at {}", source_.substr(pos_, bytes), pos_));
      return;
    }
    if (!Balance(found[0], open)) return;
    Add(TokenType::kOperator, line_, std::string(found));
    Advance(pos_ + found.size());
  }

  bool Balance(char c, std::string* open) {
    if (c == '{' || c == '(' || c == '[') {
      open->push_back(c == '{' ? '}' : c == '(' ? ')' : ']');
    } else if (c == '}' || c == ')' || c == ']') {
      if (open->empty()) {
        Fail(fmt::format("unexpected '{}'", c));
        return false;
      }
      if (open->back() != c) {
        Fail(fmt::format("unexpected '{}', expected '{}'", c, open->back()));
        return false;
      }
      open->pop_back();
    }
    return true;
  }

  std::string owned_;
  std::string_view source_;
  size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // what came last ended a line
  bool failed_ = false;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> Tokenize(std::string_view source) { return Lexer(source).Run(); }

std::string DescribeTokenType(TokenType type) {
  switch (type) {
    case TokenType::kData: return "template data / text";
    case TokenType::kVariableBegin: return "begin of print statement";
    case TokenType::kVariableEnd: return "end of print statement";
    case TokenType::kBlockBegin: return "begin of statement block";
    case TokenType::kBlockEnd: return "end of statement block";
    case TokenType::kName: return "name";
    case TokenType::kString: return "string";
    case TokenType::kInteger: return "integer";
    case TokenType::kFloat: return "float";
    case TokenType::kOperator: return "operator";
    case TokenType::kEnd: return "end of template";
    case TokenType::kError: return "error";
  }
  return "token";
}

std::string DescribeToken(const Token& token) {
  if (token.type == TokenType::kName || token.type == TokenType::kOperator) return token.text;
  return DescribeTokenType(token.type);
}

}  // namespace cachalot::text::jinja
