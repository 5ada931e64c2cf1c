#include "server/pages.h"

#include <gtest/gtest.h>

namespace cachalot::server {
namespace {

TEST(HealthPage, SaysHowItStandsAndSendsBalancersAwayOnlyWhileDraining) {
  EXPECT_EQ(HealthPage(false, {}).status, 200);
  EXPECT_EQ(HealthPage(false, {}).body, R"({"status":"ok"})");
  EXPECT_EQ(HealthPage(false, {.disk = true}).status, 200);
  EXPECT_EQ(HealthPage(false, {.disk = true}).body,
            R"({"status":"degraded","problem":"the disk tier takes no writes"})");
  EXPECT_EQ(HealthPage(false, {.sessions = true}).body,
            R"({"status":"degraded","problem":"changes to sessions are not written"})");
  EXPECT_NE(HealthPage(false, {true, true}).body.find("no writes, and changes"), std::string::npos);
  EXPECT_EQ(HealthPage(true, {.disk = true, .sessions = true}).status, 503);
  EXPECT_EQ(HealthPage(true, {.disk = true, .sessions = true}).body, R"({"status":"draining"})");
}

}  // namespace
}  // namespace cachalot::server
