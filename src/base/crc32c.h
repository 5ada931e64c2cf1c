// Crc32c is the Castagnoli checksum of what is written to disk: it finds accidents, not forgeries.
// Threads:   pure.
// Ownership: none.
// Invariant: equals RFC 3720's; Crc32c(b, Crc32c(a)) is that of a followed by b.
// Cost:      about 3 cycles per 8 bytes where the processor has SSE4.2, else a table look-up per byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cachalot {

uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

// The same without the processor's instruction: what the other is tested against.
uint32_t Crc32cByTable(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace cachalot
