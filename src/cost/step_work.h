// StepWork counts what a step computes, in the terms of the cost curve.
// Threads:   plain data and pure functions.
// Ownership: none.
// Invariant: counts saturate at nothing: positions and rows are far below 2^32 each.
// Cost:      WorkShape::Rows is O(windows), without allocation.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/step_curve.h"

namespace cachalot::cost {

struct StepWork {
  uint64_t rows = 0;
  uint64_t visible_full = 0;     // positions that all rows together see, in one layer of full attention
  uint64_t visible_sliding = 0;  // in one sliding layer of each window
  uint64_t logit_rows = 0;

  StepWork& operator+=(const StepWork& other);
  bool operator==(const StepWork&) const = default;
};

// Of a model: which of its layers see how far.
class WorkShape {
 public:
  // One window per layer or layer group; 0: full attention.
  explicit WorkShape(std::span<const uint32_t> windows);

  // Of the rows at positions [first, first + rows) of one sequence.
  StepWork Rows(uint64_t first, uint64_t rows, uint64_t logit_rows = 0) const;

 private:
  bool has_full_ = false;
  std::vector<uint32_t> sliding_;  // distinct windows
};

}  // namespace cachalot::cost
