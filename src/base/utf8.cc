#include "base/utf8.h"

namespace cachalot {
namespace {

constexpr bool IsContinuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

// What the first byte of a character promises: its length and which second bytes are allowed (Unicode, table 3-7).
struct Lead {
  uint32_t length;  // 0: never a first byte
  uint8_t second_min;
  uint8_t second_max;
};

constexpr Lead LeadOf(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// How many bytes from text[pos] form a character or a proper beginning of one; 0 when text[pos] begins none.
uint32_t WellFormedPrefix(std::string_view text, size_t pos, const Lead& lead) {
  if (lead.length <= 1) return lead.length;
  uint32_t n = 1;
  while (n < lead.length && pos + n < text.size()) {
    const uint8_t byte = static_cast<uint8_t>(text[pos + n]);
    const bool fits = n == 1 ? byte >= lead.second_min && byte <= lead.second_max : IsContinuation(byte);
    if (!fits) break;
    ++n;
  }
  return n;
}

}  // namespace

Utf8Char DecodeUtf8(std::string_view text, size_t pos) {
  const uint8_t first = static_cast<uint8_t>(text[pos]);
  if (first < 0x80) return {first, 1, true};
  const Lead lead = LeadOf(first);
  const uint32_t n = WellFormedPrefix(text, pos, lead);
  if (n == 0) return {kReplacementCharacter, 1, false};
  if (n < lead.length) return {kReplacementCharacter, n, false};
  char32_t code_point = first & (0x7F >> lead.length);
  for (uint32_t i = 1; i < n; ++i) code_point = (code_point << 6) | (static_cast<uint8_t>(text[pos + i]) & 0x3F);
  return {code_point, n, true};
}

void AppendUtf8(std::string* out, char32_t code_point) {
  const bool is_surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  const char32_t c = code_point > 0x10FFFF || is_surrogate ? kReplacementCharacter : code_point;
  const auto tail = [out](char32_t bits) { out->push_back(static_cast<char>(0x80 | (bits & 0x3F))); };
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xC0 | (c >> 6)));
    tail(c);
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | (c >> 12)));
    tail(c >> 6);
    tail(c);
  } else {
    out->push_back(static_cast<char>(0xF0 | (c >> 18)));
    tail(c >> 12);
    tail(c >> 6);
    tail(c);
  }
}

size_t FindInvalidUtf8(std::string_view text) {
  size_t pos = 0;
  while (pos < text.size()) {
    const Utf8Char c = DecodeUtf8(text, pos);
    if (!c.valid) return pos;
    pos += c.bytes;
  }
  return std::string_view::npos;
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Char c = DecodeUtf8(text, pos);
    if (c.valid) {
      out.append(text.substr(pos, c.bytes));
    } else {
      AppendUtf8(&out, kReplacementCharacter);
    }
    pos += c.bytes;
  }
  return out;
}

size_t IncompleteUtf8Suffix(std::string_view text) {
  for (size_t n = 1; n <= 3 && n <= text.size(); ++n) {
    const size_t pos = text.size() - n;
    const uint8_t byte = static_cast<uint8_t>(text[pos]);
    if (IsContinuation(byte)) continue;
    const Lead lead = LeadOf(byte);
    return lead.length > n && WellFormedPrefix(text, pos, lead) == n ? n : 0;
  }
  return 0;
}

}  // namespace cachalot
