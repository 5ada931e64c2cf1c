// Decoding: the ceilings that memory and links put on tokens per second.
// Threads:   plain data and pure functions.
// Ownership: none.
// Invariant: a ceiling: real kernels stay below it.
// Cost:      none.
#pragma once

#include <cstdint>

#include "base/tier_rate.h"
#include "plan/formats.h"
#include "plan/machine.h"
#include "plan/model_shape.h"
#include "plan/sizing.h"

namespace cachalot::plan {

struct DecodeStep {
  double weight_seconds = 0;  // to read the weights that a step of so many sequences uses
  double kv_seconds = 0;      // to read their KV
  double compute_seconds = 0;
  // Reading and computing overlap.
  double seconds() const;
};

// One device's part of the model. KV is read from where `kv_rate` says.
struct DecodedModel {
  ModelShape shape;
  Format weights;
  KvSizes sizes;
};

// Bytes of weights that a step of `sequences` rows reads: of experts, those that at least one row chooses, if each
// chooses its own at random.
double WeightBytesOfStep(const DecodedModel& model, uint64_t sequences);
DecodeStep PlanDecode(const DecodedModel& model, const Machine& machine, double kv_rate, uint64_t sequences,
                      uint64_t tokens);

struct AllReduce {
  uint64_t bytes_per_token = 0;  // that one device sends
  uint32_t reductions = 0;       // per step
  double seconds = 0;            // of one step, for all of them
  double share = 0;              // of a step with them
};

// Twice a layer, the sooner of a ring (each sends 2 (d - 1) / d of the activations in 2 (d - 1) messages) and of all to
// all (each sends all of them to d - 1 others at once). The step without it takes `step_seconds`.
AllReduce PlanAllReduce(const ModelShape& shape, uint32_t devices, const TierRate& link, uint64_t rows,
                        double step_seconds);

}  // namespace cachalot::plan
