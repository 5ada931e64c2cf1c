#include "plan/concurrency.h"

#include <gtest/gtest.h>

#include "plan/price.h"

namespace cachalot::plan {
namespace {

TEST(Concurrency, IsReadFromOneNumberPerLine) {
  std::string text = "# sampled each second\n";
  for (int i = 1; i <= 100; ++i) text += std::to_string(i) + (i % 2 == 0 ? "\r\n" : "\n\n");
  const Result<ConcurrencyProfile> profile = ReadConcurrency(text, "load.txt");
  ASSERT_TRUE(profile.ok()) << profile.status().message();
  EXPECT_EQ(profile->mean, 51u);  // 50.5, rounded up
  EXPECT_EQ(profile->p50, 50u);
  EXPECT_EQ(profile->p99, 99u);
  EXPECT_EQ(profile->peak, 100u);
  EXPECT_DOUBLE_EQ(ShareAbove(*profile, profile->mean), 0.49);
  EXPECT_DOUBLE_EQ(ShareAbove(*profile, 100), 0);
}

TEST(Concurrency, ABrokenLineIsNamed) {
  for (const std::string line : {"-1", "1.5", "many", "1 2", "99999999999999999999", "1000000000000000000"}) {
    const Result<ConcurrencyProfile> profile = ReadConcurrency("1\n" + line + "\n", "load.txt");
    ASSERT_FALSE(profile.ok()) << line;
    EXPECT_EQ(profile.status().message().rfind("load.txt:2: ", 0), 0u) << profile.status().message();
  }
  EXPECT_FALSE(ReadConcurrency("", "load.txt").ok());
  EXPECT_FALSE(ReadConcurrency("0\n0\n", "load.txt").ok());
}

TEST(Concurrency, NumbersMustBeInOrder) {
  EXPECT_TRUE(CheckConcurrency({.mean = 20, .p50 = 18, .p99 = 60, .peak = 90}).ok());
  EXPECT_FALSE(CheckConcurrency({.mean = 20, .p50 = 70, .p99 = 60, .peak = 90}).ok());
  EXPECT_FALSE(CheckConcurrency({.mean = 95, .p50 = 18, .p99 = 60, .peak = 90}).ok());
  EXPECT_FALSE(CheckConcurrency({.mean = 0, .p50 = 0, .p99 = 60, .peak = 90}).ok());
}

TEST(Price, AMillionTokensAtAThousandASecondTakeAThousandSeconds) {
  const Prices prices{.device_hour = 3.6};
  EXPECT_NEAR(MillionComputed(prices, 2, 1e-3), 2.0, 1e-12);
}

TEST(Price, KeptKvCostsItsRoomAndTime) {
  const Prices prices{.device_hour = 3.6, .storage_gib_month = 0.1, .keep_hours = 730};
  // A GiB per million tokens, kept for a month.
  EXPECT_NEAR(MillionLoaded(prices, 1, 1e-6, 1074), 0.001 + 0.1, 1e-4);
}

}  // namespace
}  // namespace cachalot::plan
