// Log writes one line per message to standard error, with its time and level.
// Threads:   any.
// Ownership: none.
// Invariant: a message stays on its line: control characters in it are escaped.
// Cost:      under a microsecond; a level that is off costs one comparison, besides the formatting of the arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace cachalot {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError, kOff };

// kInfo until set.
void SetLogLevel(LogLevel level);
bool LogEnabled(LogLevel level);
// "debug", "info", "warning", "error" or "off".
Result<LogLevel> ParseLogLevel(std::string_view name);

void LogDebug(std::string_view message);
void LogInfo(std::string_view message);
void LogWarning(std::string_view message);
void LogError(std::string_view message);

}  // namespace cachalot
