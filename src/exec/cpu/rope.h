// RopeAngles gives the cosines and sines by which a position rotates the pairs of a head.
// Threads:   immutable.
// Ownership: owns its frequencies.
// Invariant: the same bits on every machine: frequencies and angles in f64 with our own elementary functions.
// Cost:      one sine and cosine per pair and position.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model_spec.h"

namespace cachalot::exec {

class RopeAngles {
 public:
  explicit RopeAngles(const model::RopeSpec& spec);

  uint32_t dims() const { return static_cast<uint32_t>(frequencies_.size()) * 2; }
  // cos, sin [dims/2] of `position`.
  void At(uint64_t position, float* cos, float* sin) const;

 private:
  std::vector<double> frequencies_;  // radians per position, one per pair
};

}  // namespace cachalot::exec
