// Character classes and case mappings of Python's str, over UTF-8.
// Threads:   pure functions.
// Ownership: none.
// Invariant: the answers are those of the Python that made jinja_unicode_tables.inc; invalid bytes count as one
//            U+FFFD per maximal invalid part.
// Cost:      a class is O(1) for ASCII and O(log table) above; a mapping is linear in the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cachalot::text::jinja {

bool IsSpace(char32_t c);
bool IsLineBreak(char32_t c);  // what str.splitlines breaks at
bool IsAlpha(char32_t c);
bool IsDecimal(char32_t c);
bool IsDigit(char32_t c);
bool IsNumeric(char32_t c);
bool IsAlnum(char32_t c);
bool IsLower(char32_t c);
bool IsUpper(char32_t c);
bool IsTitle(char32_t c);
bool IsPrintable(char32_t c);
bool IsIdStart(char32_t c);
bool IsIdContinue(char32_t c);

std::string ToUpper(std::string_view text);
std::string ToLower(std::string_view text);
std::string ToTitle(std::string_view text);     // str.title
std::string Capitalize(std::string_view text);  // str.capitalize
std::string SwapCase(std::string_view text);
std::string FoldCase(std::string_view text);  // str.casefold

// \xe9, \u20ac or \U0001f600.
std::string EscapedCode(char32_t c);

// Number of characters.
size_t CountChars(std::string_view text);
// Byte offset of the character number `index`; text.size() when there are no more than `index`.
size_t CharOffset(std::string_view text, size_t index);
// Byte offset where the character before `end` starts. Requires 0 < end <= text.size().
size_t PreviousChar(std::string_view text, size_t end);

}  // namespace cachalot::text::jinja
