// Sizes and counts as people write and read them.
// Threads:   pure functions.
// Ownership: none.
// Invariant: ParseBytes(FormatBytes(n)) is within 0.05 of the unit that was printed.
// Cost:      one small string.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace cachalot {

// A size in settings: written and read with a unit.
struct ByteSize {
  uint64_t bytes = 0;
};

// "512 B", "1.5 GiB": one decimal at most, none when it is 0.
std::string FormatBytes(uint64_t bytes);

// A number, optionally with a fraction, and a unit in any case: none or B; K, M, G, T or KiB, MiB, GiB, TiB (powers of
// 1024); KB, MB, GB, TB (powers of 1000). "4GiB", "512M", "1.5 g". A fraction of a byte is dropped.
Result<uint64_t> ParseBytes(std::string_view text);

// "1,234,567".
std::string FormatCount(uint64_t count);

}  // namespace cachalot
