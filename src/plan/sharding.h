// Shard says what of a model one of several devices holds.
// Threads:   pure functions.
// Ownership: none.
// Invariant: what all devices hold together is at least the model.
// Cost:      linear in the number of layers.
//
// Tensor shards split matrices and heads. KV is split by KV heads: with more shards than KV heads each head is held
// several times, and a latent (MLA) by every shard. Context shards split positions and hold all weights.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "plan/model_shape.h"

namespace cachalot::plan {

struct Shards {
  uint32_t tensor = 1;
  uint32_t context = 1;
  uint32_t devices() const { return tensor * context; }
};

struct Shard {
  ModelShape shape;          // of one device; its windows and tokens are those of its context shard
  uint32_t kv_replicas = 1;  // devices of a tensor group that hold the same KV, at most over the layers
};

inline constexpr uint32_t kMaxShards = 1024;

// kInvalid, naming what does not divide.
Result<Shard> ShardOf(const ModelShape& shape, const Shards& shards);
// Of `tokens` positions, those of the fullest context shard.
uint64_t ShardTokens(uint64_t tokens, const Shards& shards);

}  // namespace cachalot::plan
