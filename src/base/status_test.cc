#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace cachalot {
namespace {

Result<int> Half(int x) {
  if (x % 2 != 0) return Invalid("odd");
  return x / 2;
}

Result<int> Quarter(int x) {
  CACHALOT_ASSIGN_OR_RETURN(const int half, Half(x));
  CACHALOT_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

Status CheckHalf(int x) {
  CACHALOT_RETURN_IF_ERROR(Half(x).status());
  return OkStatus();
}

TEST(Status, OkHasNoMessageAndAnnotatingKeepsItOk) {
  EXPECT_TRUE(OkStatus().ok());
  EXPECT_TRUE(OkStatus().Annotate("there").ok());
  EXPECT_EQ(OkStatus().Annotate("there").message(), "");
}

TEST(Status, AnnotatePutsThePlaceInFrontAndKeepsTheCode) {
  const Status status = Corrupt("bad sum").Annotate("block 3").Annotate("disk");
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_EQ(status.message(), "disk: block 3: bad sum");
}

TEST(Status, EachMakerHasItsCodeAndEachCodeAName) {
  EXPECT_EQ(Invalid("").code(), Code::kInvalid);
  EXPECT_EQ(Overloaded("").code(), Code::kOverloaded);
  EXPECT_EQ(Unavailable("").code(), Code::kUnavailable);
  EXPECT_EQ(Corrupt("").code(), Code::kCorrupt);
  EXPECT_EQ(Internal("").code(), Code::kInternal);
  EXPECT_STREQ(CodeName(Code::kOk), "ok");
  EXPECT_STREQ(CodeName(Code::kOverloaded), "overloaded");
}

TEST(Result, CarriesAValueOrAFailureThroughTheMacros) {
  EXPECT_EQ(Quarter(12).value(), 3);
  EXPECT_EQ(Quarter(6).status().message(), "odd");
  EXPECT_EQ(Quarter(5).status().code(), Code::kInvalid);
  EXPECT_TRUE(CheckHalf(2).ok());
  EXPECT_FALSE(CheckHalf(3).ok());
}

TEST(Result, HoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(**result, 7);
  const std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 7);
}

TEST(ResultDeathTest, TakingTheValueOfAFailureStops) {
  const Result<int> failed = Half(1);
  EXPECT_DEATH((void)failed.value(), "check failed: ok\\(\\)");
}

TEST(ResultDeathTest, AnOkStatusIsNoResult) { EXPECT_DEATH((void)Result<int>{OkStatus()}, "check failed"); }

}  // namespace
}  // namespace cachalot
