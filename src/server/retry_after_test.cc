#include "server/retry_after.h"

#include <limits>

#include <gtest/gtest.h>

namespace cachalot::server {
namespace {

TEST(RetryAfter, IsTheWaitRoundedUpWithinBounds) {
  EXPECT_EQ(RetryAfterSeconds(0), 1u);
  EXPECT_EQ(RetryAfterSeconds(0.2), 1u);
  EXPECT_EQ(RetryAfterSeconds(3.5), 4u);
  EXPECT_EQ(RetryAfterSeconds(120), 120u);
  EXPECT_EQ(RetryAfterSeconds(1e9), 3600u);
  EXPECT_EQ(RetryAfterSeconds(-1), 1u);
  EXPECT_EQ(RetryAfterSeconds(std::numeric_limits<double>::infinity()), 3600u);
  EXPECT_EQ(RetryAfterSeconds(std::numeric_limits<double>::quiet_NaN()), 1u);
}

}  // namespace
}  // namespace cachalot::server
