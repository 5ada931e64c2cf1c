#include "base/exposition.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cachalot {
namespace {

using testing::HasSubstr;

Exposition Parsed(std::string_view text) {
  Result<Exposition> exposition = ParseExposition(text);
  EXPECT_TRUE(exposition.ok()) << exposition.status().message();
  return exposition.ok() ? std::move(exposition).value() : Exposition();
}

std::string Complaint(std::string_view text) { return ParseExposition(text).status().message(); }

TEST(Exposition, ReadsWhatTheFormatAllows) {
  const Exposition e = Parsed(
      "# HELP a Some \"text\" {\n# TYPE a counter\n"
      "a 1\n"
      "  b{x=\"1\"}\t2.5e3 1700000000000\n"
      "b{ y = \"q\\\"uo\\\\te\\n\" , x=\"1\" ,} -7\n"
      "\n"
      "c:d_9{} +Inf\n"
      "e NaN\n"
      "f -Inf\n");
  EXPECT_EQ(e.size(), 6u);
  EXPECT_EQ(e.Find("a"), 1);
  EXPECT_EQ(e.Find("b", {{"x", "1"}}), 2500);
  EXPECT_EQ(e.Find("b", {{"x", "1"}, {"y", "q\"uo\\te\n"}}), -7);
  EXPECT_EQ(e.Find("c:d_9"), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(*e.Find("e")));
  EXPECT_EQ(e.Find("b"), std::nullopt);
  EXPECT_EQ(Parsed("").size(), 0u);
}

TEST(Exposition, SaysWhichLineIsWrongAndWhatWasExpected) {
  EXPECT_THAT(Complaint("a 1\nb 2"), HasSubstr("line 2: expected a line break"));
  EXPECT_THAT(Complaint("a 1\n<html>\n"), HasSubstr("line 2: expected the name of a metric"));
  EXPECT_THAT(Complaint("9a 1\n"), HasSubstr("expected the name"));
  EXPECT_THAT(Complaint("a\n"), HasSubstr("expected a number"));
  EXPECT_THAT(Complaint("a one\n"), HasSubstr("expected a number"));
  EXPECT_THAT(Complaint("a +-1\n"), HasSubstr("expected a number"));
  EXPECT_THAT(Complaint("a 1 now\n"), HasSubstr("time in milliseconds"));
  EXPECT_THAT(Complaint("a 1 2 3\n"), HasSubstr("nothing after"));
  EXPECT_THAT(Complaint("a{b} 1\n"), HasSubstr("LABEL="));
  EXPECT_THAT(Complaint("a{b=\"c} 1\n"), HasSubstr("between quotes"));
  EXPECT_THAT(Complaint("a{b=\"\\t\"} 1\n"), HasSubstr("between quotes"));
  EXPECT_THAT(Complaint("a{b=\"c\" d=\"e\"} 1\n"), HasSubstr("\",\" or \"}\""));
  EXPECT_THAT(Complaint("a{b=\"c\",b=\"d\"} 1\n"), HasSubstr("twice"));
  EXPECT_THAT(Complaint("a{b=\"1\",c=\"2\"} 1\na{c=\"2\",b=\"1\"} 1\n"), HasSubstr("line 2: the same name and labels"));
}

TEST(Exposition, TakesAHistogramApart) {
  const std::string text =
      "h_bucket{le=\"0.1\"} 2\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"10\"} 7\nh_bucket{le=\"+Inf\"} 8\nh_sum 30.5\n";
  const std::optional<BucketCounts> counts = Parsed(text + "h_count 8\n").FindBuckets("h");
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->bounds, (std::vector<double>{0.1, 1, 10}));
  EXPECT_EQ(counts->counts, (std::vector<double>{2, 0, 5, 1}));
  EXPECT_EQ(counts->sum, 30.5);
  EXPECT_EQ(counts->total(), 8);
  EXPECT_EQ(counts->Quantile(0.25)->up_to, 0.1);
  EXPECT_EQ(counts->Quantile(0.5)->above, 1);
  EXPECT_EQ(counts->Quantile(0.5)->up_to, 10);
  EXPECT_TRUE(std::isinf(counts->Quantile(1)->up_to));
  EXPECT_EQ(BucketCounts({.bounds = {1}, .counts = {0, 0}, .sum = 0}).Quantile(0.5), std::nullopt);
}

TEST(Exposition, HasNoHistogramWhereOneIsNotWhole) {
  const auto whole = [](const std::string& text) { return Parsed(text).FindBuckets("h").has_value(); };
  EXPECT_TRUE(whole("h_bucket{le=\"+Inf\"} 8\nh_sum 1\n"));
  EXPECT_FALSE(whole("h_bucket{le=\"+Inf\"} 8\n"));
  EXPECT_FALSE(whole("h_bucket{le=\"1\"} 8\nh_sum 1\n"));
  EXPECT_FALSE(whole("h_bucket{le=\"1\"} 9\nh_bucket{le=\"+Inf\"} 8\nh_sum 1\n"));
  EXPECT_FALSE(whole("h_bucket{le=\"x\"} 1\nh_bucket{le=\"+Inf\"} 8\nh_sum 1\n"));
  EXPECT_FALSE(whole("h_bucket{le=\"-Inf\"} 1\nh_bucket{le=\"+Inf\"} 8\nh_sum 1\n"));
  EXPECT_FALSE(whole("h_bucket{le=\"1\",x=\"1\"} 1\nh_bucket{le=\"+Inf\"} 8\nh_sum 1\n"));
  EXPECT_FALSE(whole("h_bucket{le=\"+Inf\"} NaN\nh_sum 1\n"));
}

}  // namespace
}  // namespace cachalot
