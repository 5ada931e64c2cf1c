#include "cost/step_work.h"

#include <gtest/gtest.h>

namespace cachalot::cost {
namespace {

TEST(StepWork, CountsWhatEachRowSees) {
  const std::vector<uint32_t> windows = {0, 8, 8, 32};
  const WorkShape shape(windows);
  for (uint64_t first = 0; first < 50; first += 7) {
    for (uint64_t rows = 0; rows < 40; ++rows) {
      StepWork expected{.rows = rows, .logit_rows = 3};
      for (uint64_t position = first; position < first + rows; ++position) {
        expected.visible_full += position + 1;
        expected.visible_sliding += std::min<uint64_t>(position + 1, 8) + std::min<uint64_t>(position + 1, 32);
      }
      EXPECT_EQ(shape.Rows(first, rows, 3), expected) << first << " " << rows;
    }
  }
}

TEST(StepWork, LayersThatAModelDoesNotHaveCountNothing) {
  const std::vector<uint32_t> full = {0, 0}, sliding = {16};
  EXPECT_EQ(WorkShape(full).Rows(10, 5).visible_sliding, 0u);
  EXPECT_EQ(WorkShape(sliding).Rows(10, 5).visible_full, 0u);
}

TEST(StepWork, PiecesAddUpToTheWhole) {
  const std::vector<uint32_t> windows = {0, 16};
  const WorkShape shape(windows);
  StepWork sum = shape.Rows(0, 13, 1);
  sum += shape.Rows(13, 20, 2);
  EXPECT_EQ(sum, shape.Rows(0, 33, 3));
}

}  // namespace
}  // namespace cachalot::cost
