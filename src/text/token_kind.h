// TokenKind says what role a token plays in a vocabulary.
// Threads:   plain value.
// Ownership: none.
// Invariant: none.
// Cost:      one byte.
#pragma once

#include <cstdint>

namespace cachalot::text {

enum class TokenKind : uint8_t { kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };

}  // namespace cachalot::text
