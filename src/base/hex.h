// HexValue reads one hexadecimal digit.
// Threads:   pure.
// Ownership: none.
// Invariant: 0 to 15 for 0-9, a-f and A-F; -1 for anything else.
// Cost:      a few comparisons.
#pragma once

namespace cachalot {

constexpr int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace cachalot
