#include "plan/sharding.h"

#include <gtest/gtest.h>

#include "plan/testing/shapes.h"

namespace cachalot::plan {
namespace {

uint64_t TokenBytesOn(const ModelShape& model, const Shards& shards) {
  const Result<Shard> shard = ShardOf(model, shards);
  EXPECT_TRUE(shard.ok()) << shard.status().message();
  return shard.ok() ? SizesOf(shard->shape).token_bytes : 0;
}

TEST(Sharding, KvHeadsAreSplitUntilEachDeviceHasOne) {
  const ModelShape model = KnownModel("llama-3.1-70b");  // 8 KV heads
  const uint64_t whole = SizesOf(model).token_bytes;
  EXPECT_EQ(TokenBytesOn(model, {2, 1}), whole / 2);
  EXPECT_EQ(TokenBytesOn(model, {8, 1}), whole / 8);
  EXPECT_EQ(ShardOf(model, {8, 1})->kv_replicas, 1u);
}

TEST(Sharding, MoreShardsThanKvHeadsHoldThemSeveralTimes) {
  const ModelShape model = KnownModel("llama-3.1-70b");
  EXPECT_EQ(TokenBytesOn(model, {32, 1}), SizesOf(model).token_bytes / 8);
  EXPECT_EQ(ShardOf(model, {32, 1})->kv_replicas, 4u);
}

TEST(Sharding, ALatentIsHeldByEveryShard) {
  const ModelShape model = KnownModel("deepseek-v3");
  EXPECT_EQ(TokenBytesOn(model, {8, 1}), SizesOf(model).token_bytes);
  EXPECT_EQ(ShardOf(model, {8, 1})->kv_replicas, 8u);
}

TEST(Sharding, ContextShardsSplitPositionsAndNoWeights) {
  const ModelShape model = KnownModel("gemma-3-27b");
  const Result<Shard> shard = ShardOf(model, {1, 4});
  ASSERT_TRUE(shard.ok());
  EXPECT_EQ(shard->shape.weights.stored(), model.weights.stored());
  EXPECT_EQ(ShardTokens(4097, {1, 4}), 1025u);
  const uint64_t on_each = LiveBytes(SizesOf(shard->shape), ShardTokens(8192, {1, 4}));
  EXPECT_EQ(4 * on_each, LiveBytes(SizesOf(model), 8192));
}

TEST(Sharding, AllShardsTogetherHoldTheModel) {
  for (const std::string name : {"llama-3.1-8b", "mixtral-8x7b", "qwen3-next-80b", "jamba-v0.1"}) {
    const ModelShape model = KnownModel(name);
    for (const uint32_t tensor : {2u, 4u, 8u}) {
      const Result<Shard> shard = ShardOf(model, {tensor, 1});
      ASSERT_TRUE(shard.ok()) << name;
      EXPECT_GE(shard->shape.weights.stored() * tensor, model.weights.stored()) << name;
      EXPECT_GE(SizesOf(shard->shape).state_bytes * tensor, SizesOf(model).state_bytes) << name;
      EXPECT_GE(SizesOf(shard->shape).token_bytes * tensor, SizesOf(model).token_bytes) << name;
    }
  }
}

TEST(Sharding, WhatDoesNotDivideIsAnError) {
  const Result<Shard> heads = ShardOf(KnownModel("falcon-7b"), {2, 1});
  ASSERT_FALSE(heads.ok());
  EXPECT_NE(heads.status().message().find("2 tensor shards do not divide the 71 query heads"), std::string::npos);
  EXPECT_FALSE(ShardOf(KnownModel("llama-3.1-8b"), {0, 1}).ok());
  EXPECT_FALSE(ShardOf(KnownModel("llama-3.1-8b"), {1, 1u << 31}).ok());
}

}  // namespace
}  // namespace cachalot::plan
