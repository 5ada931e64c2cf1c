// DecodeBase64 reads bytes as text (RFC 4648, section 4).
// Threads:   a pure function.
// Ownership: none.
// Invariant: nullopt for anything but whole groups of four with the right padding.
// Cost:      linear.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace cachalot::sim {

std::optional<std::vector<uint8_t>> DecodeBase64(std::string_view text);

}  // namespace cachalot::sim
