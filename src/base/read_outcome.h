// ReadOutcome is what became of one block that was to be read from a lower tier.
// Threads:   plain values.
// Ownership: none.
// Invariant: whatever is not kRead is a miss.
// Cost:      none.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace cachalot {

enum class ReadOutcome : uint8_t {
  kRead,
  kMissing,        // not stored, or with other groups
  kTruncated,      // the file ends before it
  kBitFlip,        // a checksum disagrees
  kForeign,        // another record, key or other tokens than asked for
  kStaleIdentity,  // another model, adapter, codec or arithmetic
  kUnreadable,     // the file cannot be opened or read
};
inline constexpr std::array<std::string_view, 7> kReadOutcomeNames = {
    "read", "missing", "truncated", "bit_flip", "foreign", "stale_identity", "unreadable"};

}  // namespace cachalot
