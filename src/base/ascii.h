// What a character of ASCII is, whatever the locale.
// Threads:   pure functions.
// Ownership: none.
// Invariant: none.
// Cost:      none.
#pragma once

namespace cachalot {

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace cachalot
