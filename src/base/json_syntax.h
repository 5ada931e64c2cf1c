// FindJsonSyntaxError says where text stops being JSON and what was expected there, for messages.
// Threads:   pure function.
// Ownership: none.
// Invariant: nothing is found exactly when the text follows the grammar of RFC 8259 (ranges and encodings aside).
// Cost:      linear; a byte per open bracket.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace cachalot {

struct JsonSyntaxError {
  size_t offset;         // of the first byte that does not fit; text.size() when the text ends too early
  const char* expected;  // e.g. "a comma or a closing bracket"
};

std::optional<JsonSyntaxError> FindJsonSyntaxError(std::string_view text);

}  // namespace cachalot
