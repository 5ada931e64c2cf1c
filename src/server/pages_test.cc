#include "server/pages.h"

#include <gtest/gtest.h>

namespace cachalot::server {
namespace {

TEST(HealthPage, SaysHowItStandsAndSendsBalancersAwayOnlyWhileDraining) {
  EXPECT_EQ(HealthPage(false, false).status, 200);
  EXPECT_EQ(HealthPage(false, false).body, R"({"status":"ok"})");
  EXPECT_EQ(HealthPage(false, true).status, 200);
  EXPECT_EQ(HealthPage(false, true).body, R"({"status":"degraded","problem":"the disk tier takes no writes"})");
  EXPECT_EQ(HealthPage(true, true).status, 503);
  EXPECT_EQ(HealthPage(true, true).body, R"({"status":"draining"})");
}

}  // namespace
}  // namespace cachalot::server
