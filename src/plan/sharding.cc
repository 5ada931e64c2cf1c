#include "plan/sharding.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace cachalot::plan {
namespace {

uint64_t Part(uint64_t whole, uint64_t parts) { return whole / parts + (whole % parts != 0 ? 1 : 0); }

Status CheckHeads(const ModelShape& shape, uint32_t tensor) {
  if (shape.query_heads % tensor != 0) {
    return Invalid(
        fmt::format("{} tensor shards do not divide the {} query heads of {}", tensor, shape.query_heads, shape.name));
  }
  for (const LayerKvShape& layer : shape.kv_layers) {
    if (layer.kv_heads % tensor != 0 && tensor % layer.kv_heads != 0) {
      return Invalid(fmt::format("{} tensor shards and the {} KV heads of {}: expected that one divides the other",
                                 tensor, layer.kv_heads, shape.name));
    }
  }
  return OkStatus();
}

void SplitWeights(uint32_t tensor, WeightCounts& weights) {
  for (uint64_t* count : {&weights.embeddings, &weights.output, &weights.attention, &weights.feed_forward,
                          &weights.experts, &weights.chosen_experts}) {
    *count = Part(*count, tensor);
  }
}

}  // namespace

Result<Shard> ShardOf(const ModelShape& shape, const Shards& shards) {
  if (shards.tensor == 0 || shards.context == 0 || uint64_t{shards.tensor} * shards.context > kMaxShards) {
    return Invalid(fmt::format("{} tensor and {} context shards: expected at least 1 of each, at most {} together",
                               shards.tensor, shards.context, kMaxShards));
  }
  CACHALOT_RETURN_IF_ERROR(CheckHeads(shape, shards.tensor));
  Shard shard{.shape = shape};
  ModelShape& part = shard.shape;
  for (LayerKvShape& layer : part.kv_layers) {
    const uint32_t heads = std::max(layer.kv_heads / shards.tensor, 1u);
    shard.kv_replicas = std::max(shard.kv_replicas, heads * shards.tensor / layer.kv_heads);
    layer.kv_heads = heads;
    layer.window = static_cast<uint32_t>(Part(layer.window, shards.context));
  }
  part.state_values = Part(shape.state_values, shards.tensor);
  part.conv_values = Part(shape.conv_values, shards.tensor);
  SplitWeights(shards.tensor, part.weights);
  if (part.file_bytes) part.file_bytes = Part(*part.file_bytes, shards.tensor);
  return shard;
}

uint64_t ShardTokens(uint64_t tokens, const Shards& shards) { return Part(tokens, shards.context); }

}  // namespace cachalot::plan
