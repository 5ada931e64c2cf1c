#include "base/log.h"

#include <gmock/gmock.h>

namespace cachalot {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::string Logged(LogLevel level, void (*log)(std::string_view), std::string_view message) {
  SetLogLevel(level);
  testing::internal::CaptureStderr();
  log(message);
  std::string text = testing::internal::GetCapturedStderr();
  SetLogLevel(LogLevel::kInfo);
  return text;
}

TEST(Log, WritesTimeLevelAndMessage) {
  EXPECT_THAT(Logged(LogLevel::kInfo, LogInfo, "ready {} %s"),
              MatchesRegex("[0-9-]+ [0-9:]+\\.[0-9]+ I ready \\{\\} %s\n"));
  EXPECT_THAT(Logged(LogLevel::kInfo, LogWarning, "slow"), HasSubstr(" W slow\n"));
  EXPECT_THAT(Logged(LogLevel::kInfo, LogError, "broken"), HasSubstr(" E broken\n"));
}

TEST(Log, LevelsBelowTheSetOneAreSilent) {
  EXPECT_EQ(Logged(LogLevel::kInfo, LogDebug, "x"), "");
  EXPECT_EQ(Logged(LogLevel::kError, LogWarning, "x"), "");
  EXPECT_EQ(Logged(LogLevel::kOff, LogError, "x"), "");
  EXPECT_THAT(Logged(LogLevel::kDebug, LogDebug, "x"), HasSubstr(" D x\n"));
}

TEST(Log, AMessageCannotForgeAnotherLine) {
  const std::string text = Logged(LogLevel::kInfo, LogInfo, "a\nb\x1b[31m\tc");
  EXPECT_THAT(text, HasSubstr("a\\nb\\x1b[31m\\x09c\n"));
}

TEST(Log, LevelNamesAreParsedAndOthersRefused) {
  EXPECT_EQ(ParseLogLevel("warning").value(), LogLevel::kWarning);
  EXPECT_EQ(ParseLogLevel("off").value(), LogLevel::kOff);
  EXPECT_THAT(ParseLogLevel("loud").status().message(), HasSubstr("\"loud\""));
}

}  // namespace
}  // namespace cachalot
