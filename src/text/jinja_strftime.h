// strftime for UTC in the C locale, as Python's datetime.strftime writes a time without a zone.
// Threads:   pure function.
// Ownership: none.
// Invariant: no clock, locale or time zone of the machine is asked.
// Cost:      linear in the format.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cachalot::text::jinja {

// Directives that are not known are written as they stand.
std::string FormatTime(std::string_view format, int64_t unix_seconds);

}  // namespace cachalot::text::jinja
