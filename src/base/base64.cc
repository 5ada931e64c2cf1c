#include "base/base64.h"

#include <algorithm>
#include <array>

namespace cachalot {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// By character; -1: none of them.
constexpr std::array<int8_t, 256> kValues = [] {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < kDigits.size(); ++i) values[static_cast<uint8_t>(kDigits[i])] = static_cast<int8_t>(i);
  return values;
}();

}  // namespace

std::string FormatBase64(std::span<const uint8_t> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) bits = bits << 8 | (k < count ? bytes[i + k] : 0);
    for (size_t k = 0; k < 4; ++k) text.push_back(k <= count ? kDigits[bits >> (18 - 6 * k) & 63] : '=');
  }
  return text;
}

std::optional<std::vector<uint8_t>> ParseBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::vector<uint8_t> bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const size_t digits = i + 4 == text.size() ? 4 - padding : 4;
    uint32_t bits = 0;
    for (size_t k = 0; k < 4; ++k) {
      const int8_t value = k < digits ? kValues[static_cast<uint8_t>(text[i + k])] : int8_t{0};
      if (value < 0) return std::nullopt;
      bits = bits << 6 | static_cast<uint32_t>(value);
    }
    if ((bits & ((uint32_t{1} << (8 * (4 - digits))) - 1)) != 0) return std::nullopt;
    for (size_t k = 0; k + 1 < digits; ++k) bytes.push_back(static_cast<uint8_t>(bits >> (16 - 8 * k)));
  }
  return bytes;
}

}  // namespace cachalot
