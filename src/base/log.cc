#include "base/log.h"

#include <array>

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace cachalot {
namespace {

struct LevelName {
  std::string_view name;
  LogLevel level;
};

constexpr std::array kLevels = {LevelName{"debug", LogLevel::kDebug}, LevelName{"info", LogLevel::kInfo},
                                LevelName{"warning", LogLevel::kWarning}, LevelName{"error", LogLevel::kError},
                                LevelName{"off", LogLevel::kOff}};

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kOff: return spdlog::level::off;
  }
  return spdlog::level::off;
}

spdlog::logger& Logger() {
  static spdlog::logger* const logger = [] {
    // Never destroyed: threads may log while the process ends.
    auto* made = new spdlog::logger("cachalot", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%L%$ %v");
    made->flush_on(spdlog::level::debug);
    return made;
  }();
  return *logger;
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

std::string Escaped(std::string_view message) {
  std::string out;
  out.reserve(message.size());
  for (const char c : message) {
    if (c == '\n') {
      out += "\\n";
    } else if (IsControl(c)) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out.push_back(c);
    }
  }
  return out;
}

void Write(LogLevel level, std::string_view message) {
  if (!LogEnabled(level)) return;
  Logger().log(SpdlogLevel(level), Escaped(message));
}

}  // namespace

void SetLogLevel(LogLevel level) { Logger().set_level(SpdlogLevel(level)); }

bool LogEnabled(LogLevel level) { return level != LogLevel::kOff && Logger().should_log(SpdlogLevel(level)); }

Result<LogLevel> ParseLogLevel(std::string_view name) {
  for (const LevelName& level : kLevels) {
    if (level.name == name) return level.level;
  }
  return Invalid(fmt::format("\"{}\" is not a log level; expected debug, info, warning, error or off", name));
}

void LogDebug(std::string_view message) { Write(LogLevel::kDebug, message); }
void LogInfo(std::string_view message) { Write(LogLevel::kInfo, message); }
void LogWarning(std::string_view message) { Write(LogLevel::kWarning, message); }
void LogError(std::string_view message) { Write(LogLevel::kError, message); }

}  // namespace cachalot
