#include "base/json_syntax.h"

#include <string>

namespace cachalot {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// Each Take...() moves past what it names, or returns what was expected at pos().
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  size_t pos() const { return pos_; }

  const char* TakeDocument() {
    const char* expected = nullptr;
    do {
      expected = TakeElement();
    } while (expected == nullptr && !open_.empty());
    if (expected != nullptr) return expected;
    SkipSpaces();
    return pos_ < text_.size() ? "the end of the text" : nullptr;
  }

 private:
  // A value with what leads to it and the brackets that close after it.
  const char* TakeElement() {
    if (key_follows_) {
      if (const char* expected = TakeKey()) return expected;
    }
    SkipSpaces();
    const char c = Peek();
    if (c == '{' || c == '[') {
      open_.push_back(c);
      ++pos_;
      SkipSpaces();
      key_follows_ = c == '{';
      if (Peek() != Closing()) return nullptr;
    } else if (const char* expected = TakeScalar()) {
      return expected;
    }
    return TakeClosings();
  }

  const char* TakeClosings() {
    while (!open_.empty()) {
      SkipSpaces();
      if (Peek() == ',') {
        ++pos_;
        SkipSpaces();
        key_follows_ = open_.back() == '{';
        return nullptr;
      }
      if (Peek() != Closing()) return open_.back() == '{' ? "a comma or }" : "a comma or ]";
      ++pos_;
      open_.pop_back();
    }
    return nullptr;
  }

  const char* TakeKey() {
    if (Peek() != '"') return "a key in double quotes";
    if (const char* expected = TakeString()) return expected;
    SkipSpaces();
    if (Peek() != ':') return "a colon";
    ++pos_;
    return nullptr;
  }

  const char* TakeScalar() {
    const char c = Peek();
    if (c == '"') return TakeString();
    if (c == '-' || IsDigit(c)) return TakeNumber();
    for (const std::string_view word : {"null", "true", "false"}) {
      if (text_.substr(pos_, word.size()) == word) {
        pos_ += word.size();
        return nullptr;
      }
    }
    return "a value";
  }

  const char* TakeString() {
    for (++pos_; pos_ < text_.size(); ++pos_) {
      const char c = text_[pos_];
      if (c == '"') return ++pos_, nullptr;
      if (static_cast<unsigned char>(c) < 0x20) return "an escape instead of a control character";
      if (c != '\\') continue;
      ++pos_;
      if (Peek() == 'u') {
        for (int i = 0; i < 4; ++i) {
          ++pos_;
          if (!IsHexDigit(Peek())) return "four hexadecimal digits after \\u";
        }
      } else if (std::string_view("\"\\/bfnrt").find(Peek()) == std::string_view::npos) {
        return "one of \"\\/bfnrtu after a backslash";
      }
    }
    return "a closing quote";
  }

  const char* TakeNumber() {
    if (Peek() == '-') ++pos_;
    if (Peek() == '0') {
      ++pos_;
    } else if (const char* expected = TakeDigits()) {
      return expected;
    }
    if (Peek() == '.') {
      ++pos_;
      if (const char* expected = TakeDigits()) return expected;
    }
    if (Peek() == 'e' || Peek() == 'E') {
      ++pos_;
      if (Peek() == '+' || Peek() == '-') ++pos_;
      return TakeDigits();
    }
    return nullptr;
  }

  const char* TakeDigits() {
    if (!IsDigit(Peek())) return "a digit";
    while (IsDigit(Peek())) ++pos_;
    return nullptr;
  }

  void SkipSpaces() {
    while (pos_ < text_.size() && std::string_view(" \t\n\r").find(text_[pos_]) != std::string_view::npos) ++pos_;
  }

  // NUL at the end, which fits nowhere.
  char Peek() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }
  char Closing() const { return open_.back() == '{' ? '}' : ']'; }

  const std::string_view text_;
  size_t pos_ = 0;
  std::string open_;  // brackets that are not closed
  bool key_follows_ = false;
};

}  // namespace

std::optional<JsonSyntaxError> FindJsonSyntaxError(std::string_view text) {
  Scanner scanner(text);
  if (const char* expected = scanner.TakeDocument()) return JsonSyntaxError{scanner.pos(), expected};
  return std::nullopt;
}

}  // namespace cachalot
