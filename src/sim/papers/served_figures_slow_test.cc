// The figures that take a simulated server: seconds each.
#include <map>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "sim/papers/papers.h"

namespace cachalot::sim {
namespace {

// Ours, by figure. Expects that all claims hold, with any seed.
std::map<std::string, double> FiguresOf(std::string_view name, uint64_t seed) {
  const auto result = RunPaper(**FindPaper(name), {.seed = seed});
  EXPECT_TRUE(result.ok()) << result.status().message();
  std::map<std::string, double> figures;
  for (const PaperRow& row : result->rows) {
    EXPECT_TRUE(row.holds) << name << ", seed " << seed << ": " << row.figure << " is " << row.ours;
    figures[row.figure] = row.ours;
  }
  return figures;
}

class ServedFigures : public testing::TestWithParam<uint64_t> {};

TEST_P(ServedFigures, PagesHoldTokensWhereReservationsHoldLittle) {
  const auto figures = FiguresOf("pagedattention", GetParam());
  const double longest = figures.at("contiguous, the longest"), power = figures.at("contiguous, power of two");
  EXPECT_LT(longest, power);
  EXPECT_LT(power, figures.at("contiguous, length known"));
  EXPECT_GT(figures.at("paged, of the whole pool"), 2 * figures.at("contiguous, length known"));
}

TEST_P(ServedFigures, AReservePreventsMostPreemptionsAndExpectationNearlyAll) {
  const auto figures = FiguresOf("vllm-watermark", GetParam());
  EXPECT_GT(figures.at("preemptions, optimistic"), 1000);
  EXPECT_LT(figures.at("preemptions, 5 % reserve"), 300);
  EXPECT_LT(figures.at("preemptions, expected"), 50);
  EXPECT_GT(figures.at("ITL p99, optimistic"), 2 * figures.at("ITL p99, 5 % reserve"));
}

TEST_P(ServedFigures, AgentsThrashInTheMiddleUnlessTheyAreHeldBack) {
  const auto figures = FiguresOf("concur", GetParam());
  EXPECT_GT(figures.at("speed-up, CONCUR"), 1.8);
  EXPECT_GT(figures.at("speed-up, the server's own control"), 1.8);
  EXPECT_GT(figures.at("hit rate, the server's own control"), 0.8);
  EXPECT_LT(figures.at("hit rate without control"), 0.6);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ServedFigures, testing::Values(1, 2));

}  // namespace
}  // namespace cachalot::sim
