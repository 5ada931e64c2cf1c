#include "sim/stack_distance.h"

#include <cmath>

#include <gtest/gtest.h>

#include "sim/block_replay.h"
#include "sim/workload.h"

namespace cachalot::sim {
namespace {

StackDistances Measure(const Trace& trace, const StackDistanceOptions& options = {}) {
  const auto distances = MeasureStackDistances(trace, options);
  EXPECT_TRUE(distances.ok());
  return *distances;
}

TEST(StackDistance, SaysOfEveryCapacityWhatAReplayAtItGives) {
  for (const std::string_view name : WorkloadNames()) {
    const Trace trace = MakeWorkload(name, {.seed = 7, .requests = 800}).value();
    const StackDistances distances = Measure(trace, {.warm_up_requests = 50});
    for (uint64_t i = 0; i < 20; ++i) {
      const auto capacity = static_cast<uint64_t>(std::pow(1.7, static_cast<double>(i))) + i;
      const BlockReplayResult replayed =
          ReplayBlocks(trace, {.policy = "lru", .capacity_blocks = capacity, .warm_up_requests = 50}).value();
      EXPECT_DOUBLE_EQ(distances.BlockHitRate(capacity), replayed.BlockHitRate()) << name << " " << capacity;
      EXPECT_DOUBLE_EQ(distances.TokenHitRate(capacity), replayed.TokenHitRate()) << name << " " << capacity;
    }
  }
}

TEST(StackDistance, NothingIsGainedBeyondTheLargestUsefulCapacity) {
  const Trace trace = MakeWorkload("chat", {.seed = 3, .requests = 500}).value();
  const StackDistances distances = Measure(trace);
  const uint64_t most = distances.largest_useful_capacity();
  EXPECT_EQ(distances.BlockHitRate(most), distances.BlockHitRate(100 * most));
  EXPECT_LT(distances.BlockHitRate(most - 1), distances.BlockHitRate(most));
}

TEST(StackDistance, AShareOfTheBlocksGivesNearlyTheSameCurve) {
  const Trace trace = MakeWorkload("chat", {.seed = 5, .requests = 10'000}).value();
  const StackDistances all = Measure(trace), some = Measure(trace, {.sampled = 0.1});
  double error = 0;
  const std::vector<uint64_t> capacities = {100, 300, 1000, 3000, 10'000, 30'000};
  for (const uint64_t capacity : capacities) {
    error += std::abs(all.BlockHitRate(capacity) - some.BlockHitRate(capacity));
  }
  EXPECT_LT(error / static_cast<double>(capacities.size()), 0.03);
}

TEST(StackDistance, OrderSurvivesBeingRenumbered) {
  // Many uses of few blocks, then two that were last used long ago.
  Trace trace{.block_tokens = 1, .requests = {}};
  const auto use = [&](uint64_t id) { trace.requests.push_back({.input_tokens = 1, .blocks = {id}}); };
  use(1'000'000);
  for (uint64_t i = 0; i < 20'000; ++i) use(i % 10);
  use(1'000'000);
  const StackDistances distances = Measure(trace, {.warm_up_requests = 20'001});
  EXPECT_EQ(distances.BlockHitRate(10), 0);
  EXPECT_EQ(distances.BlockHitRate(11), 1);
}

TEST(StackDistance, AShareThatIsNoneIsRefused) {
  for (const double share : {0.0, -1.0, 1.5, std::nan("")}) {
    const auto distances = MeasureStackDistances({}, {.sampled = share});
    EXPECT_EQ(distances.status().code(), Code::kInvalid);
  }
  EXPECT_EQ(Measure({}).BlockHitRate(5), 0);
}

TEST(StackDistance, WhatLooksAtNothingIsRefused) {
  const Trace trace{.block_tokens = 1, .requests = {{.input_tokens = 2, .blocks = {1, 2}}}};
  EXPECT_EQ(MeasureStackDistances(trace, {.sampled = 1e-9}).status().message(),
            "none of 2 uses of blocks is of one that a share of 1e-09 looks at: expected a larger share");
  EXPECT_EQ(MeasureStackDistances(trace, {.warm_up_requests = 1}).status().message(),
            "a warm-up of 1 requests leaves none of 1 to be counted: expected fewer");
}

}  // namespace
}  // namespace cachalot::sim
