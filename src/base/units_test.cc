#include "base/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace cachalot {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

TEST(FormatBytes, PicksTheUnitAndDropsAZeroDecimal) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1 KiB");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(uint64_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(FormatBytes(kMax), "16 EiB");
}

TEST(FormatBytes, RoundingNeverPrints1024OfAUnit) {
  EXPECT_EQ(FormatBytes((1 << 20) - 1), "1 MiB");
  EXPECT_EQ(FormatBytes((uint64_t{1} << 30) - (1 << 10)), "1 GiB");
  EXPECT_EQ(FormatBytes(1023 << 10), "1023 KiB");
}

TEST(ParseBytes, ReadsUnitsInAnyCase) {
  const auto parsed = [](const char* text) { return ParseBytes(text).value(); };
  EXPECT_EQ(parsed("0"), 0u);
  EXPECT_EQ(parsed("17"), 17u);
  EXPECT_EQ(parsed("17b"), 17u);
  EXPECT_EQ(parsed("4GiB"), uint64_t{4} << 30);
  EXPECT_EQ(parsed("512M"), uint64_t{512} << 20);
  EXPECT_EQ(parsed("1g"), uint64_t{1} << 30);
  EXPECT_EQ(parsed("3 kib"), 3072u);
  EXPECT_EQ(parsed("2tb"), 2'000'000'000'000u);
  EXPECT_EQ(parsed("1.5K"), 1536u);
  EXPECT_EQ(parsed("0.0009765625k"), 1u);
  EXPECT_EQ(parsed("0.1K"), 102u);
  EXPECT_EQ(parsed("1.99999999999999999999999999"), 1u);
}

TEST(ParseBytes, AcceptsExactlyWhatFitsIn64Bits) {
  EXPECT_EQ(ParseBytes("18446744073709551615").value(), kMax);
  EXPECT_EQ(ParseBytes("18446744073709551616").status().code(), Code::kInvalid);
  EXPECT_EQ(ParseBytes("16777215.9T").value(), 18446743963758388838u);
  EXPECT_EQ(ParseBytes("16777216T").status().code(), Code::kInvalid);
  EXPECT_EQ(ParseBytes(std::string(1000, '9')).status().code(), Code::kInvalid);
}

TEST(ParseBytes, RefusesWhatIsNoSizeAndNamesIt) {
  for (const char* text :
       {"", "GiB", "-1", "+1", " 1", "1 ", "1..5G", "1.G", ".5G", "1e9", "4 GG", "0x10", "nan", "1K\n"}) {
    const Result<uint64_t> parsed = ParseBytes(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_NE(parsed.status().message().find(std::string("\"") + text + "\""), std::string::npos);
  }
}

TEST(FormatCount, GroupsByThousands) {
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
}

}  // namespace
}  // namespace cachalot
