#include "sim/papers/paper.h"

#include <set>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/papers/papers.h"

namespace cachalot::sim {
namespace {

TEST(Paper, FiguresArePrintedWithTheirUnits) {
  EXPECT_EQ(FormatFigure(1065, FigureUnit::kCount), "1,065");
  EXPECT_EQ(FormatFigure(0.20444, FigureUnit::kPercent), "20.4 %");
  EXPECT_EQ(FormatFigure(0.21156, FigureUnit::kRate), "0.2116");
  EXPECT_EQ(FormatFigure(0.0177, FigureUnit::kSeconds), "0.0177 s");
  EXPECT_EQ(FormatFigure(1.534, FigureUnit::kTimes), "1.53 x");
}

TEST(Paper, EqualMeansAsPrinted) {
  EXPECT_TRUE(EqualRow("", FigureUnit::kRate, 0.21156, 0.2116).holds);
  EXPECT_FALSE(EqualRow("", FigureUnit::kRate, 0.2117, 0.2116).holds);
  EXPECT_FALSE(EqualRow("", FigureUnit::kCount, 15, 16).holds);
}

TEST(Paper, NearIsNoFurtherThanTheTolerance) {
  EXPECT_TRUE(NearRow("", FigureUnit::kPercent, 0.22, 0.204, 0.02).holds);
  EXPECT_FALSE(NearRow("", FigureUnit::kPercent, 0.18, 0.204, 0.02).holds);
  EXPECT_EQ(NearRow("", FigureUnit::kPercent, 0.22, 0.204, 0.02).claim, "within 2.0 points");
}

TEST(Paper, WhatClaimsNothingIsNotCounted) {
  const PaperResult result{.setting = {},
                           .rows = {ShownRow("a", FigureUnit::kCount, 1), EqualRow("b", FigureUnit::kCount, 1, 2),
                                    ClaimRow("c", FigureUnit::kCount, 1, "more than 0", true)}};
  EXPECT_EQ(result.claims(), 2u);
  EXPECT_EQ(result.holding(), 1u);
}

TEST(Papers, AreFoundByTheirNames) {
  std::set<std::string_view> names;
  for (const Paper& paper : Papers()) {
    EXPECT_TRUE(names.insert(paper.name).second) << paper.name;
    EXPECT_FALSE(paper.title.empty() || paper.source.empty() || paper.differs.empty()) << paper.name;
    const auto found = FindPaper(paper.name);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, &paper);
  }
  EXPECT_EQ(names.size(), 9u);
  EXPECT_THAT(FindPaper("pagedatention").status().message(), testing::HasSubstr("expected one of pagedattention, "));
}

}  // namespace
}  // namespace cachalot::sim
