// Tokenize splits a Jinja template into tokens, with trim_blocks and lstrip_blocks on.
// Threads:   pure function.
// Ownership: tokens own their text.
// Invariant: the last token is kEnd or kError and there is exactly one such; braces inside tags are balanced.
// Cost:      linear in the source.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cachalot::text::jinja {

enum class TokenType : uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
  kError,  // text is the message; it counts only when the parser gets here
};

struct Token {
  TokenType type = TokenType::kEnd;
  int line = 0;
  std::string text;  // name, string value, template data, operator spelling or error message
  int64_t integer = 0;
  double number = 0;

  bool IsName(std::string_view name) const { return type == TokenType::kName && text == name; }
  bool IsOperator(std::string_view spelling) const { return type == TokenType::kOperator && text == spelling; }
};

// `source` must be valid UTF-8. CR LF and CR become LF, and one line break at the very end is dropped.
std::vector<Token> Tokenize(std::string_view source);

// How messages name a token, as Jinja does: 'end of statement block', '(', a name itself, 'string', ...
std::string DescribeToken(const Token& token);
std::string DescribeTokenType(TokenType type);

}  // namespace cachalot::text::jinja
