// MakePlan works out what a model needs on a machine: the values that every table of the report begins from.
// Threads:   plain data and pure functions.
// Ownership: a Plan owns a copy of what it was made from.
// Invariant: equal requests give equal plans.
// Cost:      microseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "plan/concurrency.h"
#include "plan/machine.h"
#include "plan/model_shape.h"
#include "plan/price.h"
#include "plan/sizing.h"

namespace cachalot::plan {

struct PlanRequest {
  ModelShape model;
  Machine machine;
  bool choose_shards = true;  // machine.shards is not given: the fewest devices
  Format weight_format;
  KvOptions kv;
  uint64_t context_tokens = 0;              // of each sequence
  uint64_t users = 0;                       // sequences at once; 0: as many as fit
  uint64_t activation_bytes = 0;            // of one device; 0: estimated
  std::string activations_by;               // whose they are, where that is not the user's word
  uint64_t host_bytes = 0, disk_bytes = 0;  // lower tiers; 0: none
  std::optional<ConcurrencyProfile> concurrency;
  Prices prices;
};

// Of one device.
struct DeviceMemory {
  uint64_t usable_bytes = 0;
  uint64_t weight_bytes = 0;
  uint64_t activation_bytes = 0;
  uint64_t pool_bytes = 0;   // what is left for KV
  bool weights_fit = false;  // else the pool is 0
};

// One group of devices that holds the model together.
struct DeviceGroup {
  Shards shards;
  Shard shard;
  KvSizes sizes;  // of one device
  DeviceMemory memory;
  uint64_t sequences = 0;  // of the request's context that the group holds

  uint64_t pool_bytes() const { return memory.pool_bytes * shards.devices(); }
};

// So many groups, side by side, hold the request's users.
struct Fleet {
  DeviceGroup group;
  uint64_t groups = 0;
  uint64_t devices() const { return groups * group.shards.devices(); }
};

struct Plan {
  PlanRequest request;
  KvSizes sizes;  // of the whole model
  DeviceGroup group;
  std::vector<Fleet> fleets;       // by tensor shards, those that hold at least one sequence
  std::optional<size_t> smallest;  // of them: the fewest devices, then the most sequences
};

// Values that no machine has; up to them products fit 64 bits.
inline constexpr uint32_t kMaxBlockTokens = 4096;
inline constexpr uint32_t kMaxStepRows = 1 << 20;
inline constexpr uint64_t kMaxUsers = 1'000'000'000;
inline constexpr uint64_t kMaxDeviceBytes = uint64_t{1} << 48;
inline constexpr uint64_t kMaxSessionBytes = uint64_t{1} << 52;

// kInvalid, naming what is out of range.
Result<Plan> MakePlan(const PlanRequest& request);

Result<DeviceGroup> MakeGroup(const PlanRequest& request, const Shards& shards);
// Fleets that hold `users` sequences, one for each number of tensor shards that divides the heads.
std::vector<Fleet> FleetsFor(const PlanRequest& request, uint64_t users);
std::optional<size_t> SmallestFleet(const std::vector<Fleet>& fleets);
// Contiguous activations of the largest step, on one device: an estimate.
uint64_t ActivationBytes(const ModelShape& shard, uint64_t rows, uint64_t logit_rows);

}  // namespace cachalot::plan
