// Base64 writes bytes as text and back: RFC 4648's standard alphabet, padded.
// Threads:   pure functions.
// Ownership: none.
// Invariant: what FormatBase64 gives, and nothing else, is parsed: no blanks, no missing padding, no stray bits.
// Cost:      linear.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cachalot {

std::string FormatBase64(std::span<const uint8_t> bytes);
std::optional<std::vector<uint8_t>> ParseBase64(std::string_view text);

}  // namespace cachalot
