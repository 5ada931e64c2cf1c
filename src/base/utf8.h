// Reading and checking UTF-8.
// Threads:   pure functions.
// Ownership: none.
// Invariant: decoding always advances, at any input, and never reads past the end.
// Cost:      linear.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cachalot {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

struct Utf8Char {
  char32_t code_point;  // kReplacementCharacter when !valid
  uint32_t bytes;       // >= 1: the length of the character, or of the maximal invalid subpart (Unicode, 3.9, U+FFFD
                        // substitution)
  bool valid;
};

// The character at text[pos]. Requires pos < text.size(). Overlong forms, surrogates and values past 10FFFF are
// invalid.
Utf8Char DecodeUtf8(std::string_view text, size_t pos);

// Appends the UTF-8 form of a code point; an invalid code point appends U+FFFD.
void AppendUtf8(std::string* out, char32_t code_point);

// Byte offset of the first invalid byte, or npos when the text is valid UTF-8.
size_t FindInvalidUtf8(std::string_view text);

// A copy with each maximal invalid subpart replaced by U+FFFD.
std::string ReplaceInvalidUtf8(std::string_view text);

// How many bytes at the end of `text` are the beginning of a character that more bytes could complete (0 to 3).
size_t IncompleteUtf8Suffix(std::string_view text);

}  // namespace cachalot
