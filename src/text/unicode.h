// Unicode facts that tokenizers need: the class of a code point, and decoding that is as lenient as llama.cpp's.
// Threads:   pure functions over a table that is filled once.
// Ownership: the table lives as long as the process.
// Invariant: classes are those of Unicode 16.0 (tools/make_unicode_table.py); decoding always advances and never reads
//            past the end.
// Cost:      one load per code point; the table is 1.1 MB, of which a text touches the pages of its own scripts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cachalot::text {

inline constexpr char32_t kCodePointLimit = 0x110000;

enum class CharClass : uint8_t { kOther = 0, kLetter = 1, kNumber = 2, kSpace = 3 };  // \p{L}, \p{N}, \s

// One byte per code point: its CharClass in the low two bits, and these.
inline constexpr uint8_t kClassMask = 3;
inline constexpr uint8_t kMayChangeInNfc = 4;
inline constexpr uint8_t kNumberSince17 = 8;  // kOther here, a number by Unicode 17.0
const uint8_t* UnicodeClasses();

struct LaxChar {
  char32_t code_point;
  uint32_t bytes;  // >= 1
};

// The character at text[pos], read as llama.cpp reads it: the lead byte gives the length and the others only have to be
// continuation bytes, so overlong forms and surrogates pass. What is broken, or lies past 10FFFF, is U+FFFD and one
// byte long. Equals strict decoding on valid UTF-8. Requires pos < text.size().
inline LaxChar DecodeLax(std::string_view text, size_t pos) {
  constexpr LaxChar kBroken{0xFFFD, 1};
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[pos + i])); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {static_cast<char32_t>(lead), 1};
  const uint32_t length = lead < 0xC0 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF8 ? 4 : 0;
  if (length == 0 || length > text.size() - pos) return kBroken;
  uint32_t value = lead & (0x7Fu >> length);
  for (uint32_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return kBroken;
    value = value << 6 | (byte(i) & 0x3F);
  }
  return value < kCodePointLimit ? LaxChar{static_cast<char32_t>(value), length} : kBroken;
}

// Appends the 1 to 4 bytes of a code point below kCodePointLimit; surrogates get their three bytes too.
void AppendLax(std::string* out, char32_t code_point);

// The text as DecodeLax reads it, written back: equal to the text if that is valid UTF-8.
std::string ReadLax(std::string_view text);

}  // namespace cachalot::text
