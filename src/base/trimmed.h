// Trimmed takes blanks off both ends of a line.
// Threads:   a pure function.
// Ownership: the result refers to the text.
// Invariant: what is between stays.
// Cost:      linear in the blanks.
#pragma once

#include <algorithm>
#include <string_view>

namespace cachalot {

inline constexpr std::string_view kBlanks = " \t\r";

inline std::string_view Trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

}  // namespace cachalot
