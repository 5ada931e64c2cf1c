#include "text/jinja_strftime.h"

#include <gtest/gtest.h>

namespace cachalot::text::jinja {
namespace {

constexpr int64_t kDay = 86400;

TEST(FormatTime, WritesCommonDirectives) {
  EXPECT_EQ(FormatTime("%d %b %Y", 1722470405), "01 Aug 2024");
  EXPECT_EQ(FormatTime("%A, %B %-d, %Y at %I:%M %p", 1722470405), "Thursday, August 1, 2024 at 12:00 AM");
  EXPECT_EQ(FormatTime("%Y-%m-%dT%H:%M:%SZ", 1722470405), "2024-08-01T00:00:05Z");
  EXPECT_EQ(FormatTime("%e|%_d|%k|%l|%^a|%5", 1722470405), " 1| 1| 0|12|THU|%5");
}

TEST(FormatTime, CountsDaysThroughLeapYears) {
  EXPECT_EQ(FormatTime("%F %j %a", 0), "1970-01-01 001 Thu");
  EXPECT_EQ(FormatTime("%F %j %a", -1), "1969-12-31 365 Wed");
  EXPECT_EQ(FormatTime("%F %j %a", 951782400), "2000-02-29 060 Tue");
  EXPECT_EQ(FormatTime("%F %j %a", 951782400 + kDay), "2000-03-01 061 Wed");
  EXPECT_EQ(FormatTime("%F %j", 4107542400), "2100-03-01 060");
}

TEST(FormatTime, KnowsIsoWeeks) {
  EXPECT_EQ(FormatTime("%G-W%V-%u", 1609459200), "2020-W53-5");  // 2021-01-01
  EXPECT_EQ(FormatTime("%G-W%V-%u", 1735603200), "2025-W01-2");  // 2024-12-31
}

TEST(FormatTime, ClampsTimesThatPythonCannotHold) {
  EXPECT_EQ(FormatTime("%F %T", INT64_MAX), "9999-12-31 23:59:59");
  EXPECT_EQ(FormatTime("%m-%d %T", INT64_MIN), "01-01 00:00:00");
}

}  // namespace
}  // namespace cachalot::text::jinja
