#include "plan/sizing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "kv/budget.h"
#include "plan/testing/shapes.h"

namespace cachalot::plan {
namespace {

using Random = std::mt19937_64;

uint64_t Between(Random& random, uint64_t least, uint64_t most) { return least + random() % (most - least + 1); }

// Layers of up to three windows and of sizes that need not fit together.
ModelShape RandomModel(Random& random) {
  ModelShape model{.name = "random", .query_heads = 8};
  const uint64_t layers = Between(random, 1, 12);
  for (uint64_t i = 0; i < layers; ++i) {
    const std::array<uint32_t, 3> windows = {0, 40, 100};
    model.kv_layers.push_back({.kv_heads = static_cast<uint32_t>(Between(random, 1, 4)),
                               .k_dim = static_cast<uint32_t>(2 * Between(random, 1, 8)),
                               .v_dim = static_cast<uint32_t>(2 * Between(random, 0, 8)),
                               .window = windows[random() % windows.size()]});
  }
  if (random() % 2 == 0) model.state_values = Between(random, 1, 1000);
  return model;
}

// Byte by byte: each layer keeps each token that a later row may see.
uint64_t LiveByHand(const ModelShape& model, uint64_t tokens) {
  uint64_t bytes = 4 * model.state_values + 2 * model.conv_values;
  for (const LayerKvShape& layer : model.kv_layers) {
    for (uint64_t token = 0; token < tokens; ++token) {
      const bool kept = layer.window == 0 || token + layer.window >= tokens;
      if (kept) bytes += 2 * layer.kv_heads * (layer.k_dim + layer.v_dim);
    }
  }
  return bytes;
}

// Block by block: a sequence grows in steps, takes a slot for every block that it enters and gives one back when no row
// to come can see it. The most slots that it ever holds.
uint64_t PeakByHand(const KvSizes& sizes, uint64_t tokens, Random& random) {
  const uint32_t block = sizes.geometry.block_tokens;
  std::vector<uint64_t> first(sizes.geometry.windows.size()), end(first.size());
  uint64_t peak = 0;
  for (uint64_t at = 0; at < tokens;) {
    const uint64_t next = std::min(tokens, at + Between(random, 1, sizes.step_tokens));
    uint64_t held = 0;
    for (size_t g = 0; g < first.size(); ++g) {
      const uint32_t window = sizes.geometry.windows[g];
      while (window != 0 && (first[g] + 1) * block + window <= at + 1) ++first[g];
      while (end[g] * block < next) ++end[g];
      held += end[g] - std::min(first[g], end[g]);
    }
    peak = std::max(peak, held);
    at = next;
  }
  return peak;
}

TEST(Sizing, LiveBytesAreThoseOfEveryVisibleToken) {
  Random random(1);
  for (int round = 0; round < 100; ++round) {
    const ModelShape model = RandomModel(random);
    const KvSizes sizes = SizesOf(model);
    const uint64_t tokens = Between(random, 1, 300);
    ASSERT_EQ(LiveBytes(sizes, tokens), LiveByHand(model, tokens));
  }
}

TEST(Sizing, ReservedIsTheMostThatAnyWayToGrowHolds) {
  Random random(2);
  for (int round = 0; round < 60; ++round) {
    KvSizes sizes = SizesOf(RandomModel(random));
    sizes.step_tokens = static_cast<uint32_t>(Between(random, 1, 80));
    const uint64_t tokens = Between(random, 1, 400);
    const uint64_t reserved = ReservedBytes(sizes, tokens);
    for (int way = 0; way < 20; ++way) {
      ASSERT_LE(PeakByHand(sizes, tokens, random) * sizes.slot_bytes + sizes.state_bytes, reserved);
    }
    ASSERT_LE(LiveBytes(sizes, tokens), PagedBytes(sizes, tokens));
    ASSERT_LE(PagedBytes(sizes, tokens), reserved);
  }
}

TEST(Sizing, SequencesThatFitAreThoseThatAdmissionTakes) {
  Random random(3);
  for (int round = 0; round < 60; ++round) {
    const KvSizes sizes = SizesOf(RandomModel(random));
    const uint64_t tokens = Between(random, 1, 400), one = ReservedBytes(sizes, tokens);
    const uint64_t pool = Between(random, 0, 20 * one);
    uint64_t admitted = 0;
    for (uint64_t left = pool; left >= one; left -= one) ++admitted;
    ASSERT_EQ(SequencesThatFit(sizes, pool, tokens), admitted);
  }
}

TEST(Sizing, TokensThatFitAreTheMostForWhichAllFit) {
  Random random(4);
  for (int round = 0; round < 40; ++round) {
    const KvSizes sizes = SizesOf(RandomModel(random));
    const uint64_t sequences = Between(random, 1, 5), limit = 500;
    const uint64_t pool = Between(random, 0, 2 * sequences * ReservedBytes(sizes, 200));
    uint64_t longest = 0;
    for (uint64_t tokens = 1; tokens <= limit; ++tokens) {
      if (ReservedBytes(sizes, tokens) <= pool / sequences) longest = tokens;
    }
    ASSERT_EQ(TokensThatFit(sizes, pool, sequences, limit), longest);
  }
}

TEST(Sizing, AgreesWithTheBudgetOfTheServer) {
  const ModelShape model = KnownModel("gemma-3-270m");
  const uint64_t context = 32'768;
  const KvSizes sizes = SizesOf(model, "f16", context);
  kv::BudgetInputs inputs{.available_bytes = uint64_t{1} << 40,
                          .kv_bytes = uint64_t{1} << 30,
                          .slot_bytes = sizes.slot_bytes,
                          .geometry = sizes.geometry,
                          .context_tokens = context,
                          .step_tokens = sizes.step_tokens};
  const Result<kv::BudgetPlan> budget = kv::PlanBudget(inputs);
  ASSERT_TRUE(budget.ok()) << budget.status().message();
  EXPECT_EQ(SequencesThatFit(sizes, inputs.kv_bytes, context), static_cast<uint64_t>(budget->full_length_sequences));
}

TEST(Sizing, AModelWithoutKvTakesItsStateOnly) {
  const KvSizes sizes = SizesOf(KnownModel("mamba-2.8b"));
  EXPECT_EQ(sizes.token_bytes, 0u);
  EXPECT_EQ(LiveBytes(sizes, 1), LiveBytes(sizes, 1'000'000));
  EXPECT_EQ(sizes.state_bytes, 64u * 5120 * (16 * 4 + 3 * 2));
  EXPECT_EQ(TokensThatFit(sizes, sizes.state_bytes * 3, 3, 777), 777u);
  EXPECT_EQ(TokensThatFit(sizes, sizes.state_bytes * 3 - 1, 3, 777), 0u);
}

TEST(Sizing, AnEncodedFormatShrinksBlocksInProportion) {
  const ModelShape model = KnownModel("llama-3.1-8b");
  EXPECT_EQ(SizesOf(model, "int8").block_bytes() * 32, SizesOf(model).block_bytes() * 17);
  EXPECT_EQ(SizesOf(model, "int4").token_bytes * 32, SizesOf(model).token_bytes * 9);
}

TEST(Sizing, WhatDoesNotFit64BitsIsAnError) {
  const KvSizes sizes = SizesOf(KnownModel("llama-3.1-405b"));
  const Result<uint64_t> bytes = PoolBytes(sizes, kMaxSequences, 131'072);
  ASSERT_FALSE(bytes.ok());
  EXPECT_NE(bytes.status().message().find("more than 2^64 bytes"), std::string::npos);
}

}  // namespace
}  // namespace cachalot::plan
