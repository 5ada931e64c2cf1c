#include "sim/block_replay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/random.h"
#include "kv/eviction.h"
#include "sim/workload.h"

namespace cachalot::sim {
namespace {

Trace Workload(std::string_view name, uint32_t requests, uint64_t seed = 1) {
  auto trace = MakeWorkload(name, {.seed = seed, .requests = requests});
  EXPECT_TRUE(trace.ok());
  return std::move(trace).value();
}

BlockReplayResult Replay(const Trace& trace, BlockReplayOptions options) {
  const auto result = ReplayBlocks(trace, options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  return *result;
}

// Requests of full blocks of one token.
Trace Requests(const std::vector<std::vector<uint64_t>>& blocks) {
  Trace trace{.block_tokens = 1, .requests = {}};
  for (const auto& ids : blocks) {
    trace.requests.push_back(
        {.arrival = std::chrono::seconds(trace.requests.size()), .input_tokens = ids.size(), .blocks = ids});
  }
  return trace;
}

TEST(BlockReplay, HitsAreTheLeadingRunAndTailsLeaveFirst) {
  const Trace trace = Requests({{0, 1, 2}, {0, 3}, {0, 1, 2}, {0, 3}});
  // Room for four: 2 leaves for 3; then {0, 1} hit and 2 comes back for 3, which was used before.
  const BlockReplayResult result = Replay(trace, {.policy = "lru", .capacity_blocks = 3});
  EXPECT_EQ(result.requests, 4u);
  EXPECT_EQ(result.blocks, 10u);
  EXPECT_EQ(result.hit_blocks, 1u + 2u + 1u);
  EXPECT_EQ(result.inserted_blocks, 3u + 1u + 1u + 1u);
  EXPECT_EQ(result.evicted_blocks, 3u);
  EXPECT_EQ(Replay(trace, {.policy = "lru", .capacity_blocks = 4}).hit_blocks, 1u + 3u + 2u);
  EXPECT_EQ(Replay(trace, {.policy = "lru", .capacity_blocks = 4, .warm_up_requests = 2}).hit_blocks, 3u + 2u);
}

// LRU in three lines: all blocks in one list, last block of a request first.
uint64_t PlainLruHits(const Trace& trace, uint64_t capacity) {
  std::map<uint64_t, uint64_t> used;  // id to time
  uint64_t time = 0, hits = 0;
  for (const TraceRequest& request : trace.requests) {
    for (size_t i = 0; i < request.blocks.size() && used.contains(request.blocks[i]); ++i) ++hits;
    for (size_t i = request.blocks.size(); i-- > 0;) used[request.blocks[i]] = ++time;
    while (used.size() > capacity) {
      used.erase(std::ranges::min_element(used, {}, [](const auto& item) { return item.second; }));
    }
  }
  return hits;
}

TEST(BlockReplay, LruIsWhatAPlainListGivesWhetherOrNotOnlyLeavesGo) {
  for (const std::string_view name : WorkloadNames()) {
    const Trace trace = Workload(name, 300);
    for (const uint64_t capacity : {1u, 40u, 150u}) {
      const uint64_t expected = PlainLruHits(trace, capacity);
      for (const bool leaves_only : {true, false}) {
        EXPECT_EQ(Replay(trace, {.policy = "lru", .capacity_blocks = capacity, .leaves_only = leaves_only}).hit_blocks,
                  expected)
            << name << " " << capacity;
      }
    }
  }
}

// The most hits that any choice of blocks to keep can give.
uint64_t MostHits(const Trace& trace, uint64_t capacity) {
  std::map<std::vector<uint64_t>, uint64_t> best{{{}, 0}};  // by what is resident
  for (const TraceRequest& request : trace.requests) {
    std::map<std::vector<uint64_t>, uint64_t> next;
    for (const auto& [kept, hits] : best) {
      uint64_t now_hits = hits;
      for (size_t i = 0; i < request.blocks.size() && std::ranges::count(kept, request.blocks[i]) > 0; ++i) ++now_hits;
      std::vector<uint64_t> all = kept;
      all.insert(all.end(), request.blocks.begin(), request.blocks.end());
      std::ranges::sort(all);
      all.erase(std::unique(all.begin(), all.end()), all.end());
      for (uint64_t chosen = 0; chosen < uint64_t{1} << all.size(); ++chosen) {
        std::vector<uint64_t> keep;
        for (size_t i = 0; i < all.size(); ++i) {
          if ((chosen >> i & 1) != 0) keep.push_back(all[i]);
        }
        if (keep.size() > capacity) continue;
        uint64_t& reached = next[keep];
        reached = std::max(reached, now_hits);
      }
    }
    best = std::move(next);
  }
  uint64_t most = 0;
  for (const auto& [kept, hits] : best) most = std::max(most, hits);
  return most;
}

TEST(BlockReplay, NoChoiceBeatsTheOptimumAndNoPolicyDoes) {
  SplitMix64 random(2);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::vector<uint64_t>> requests(7);
    for (auto& ids : requests) {
      for (uint64_t node = 0; ids.size() < 3; node = 2 * node + 1 + random.Below(2)) ids.push_back(node);
      ids.resize(1 + random.Below(3));
    }
    const Trace trace = Requests(requests);
    for (const uint64_t capacity : {1u, 2u, 3u, 4u}) {
      const uint64_t most = MostHits(trace, capacity);
      EXPECT_EQ(Replay(trace, {.policy = kOptimumPolicy, .capacity_blocks = capacity}).hit_blocks, most);
      for (const std::string_view name : kv::EvictionPolicyNames()) {
        EXPECT_LE(Replay(trace, {.policy = std::string(name), .capacity_blocks = capacity}).hit_blocks, most) << name;
      }
    }
  }
}

TEST(BlockReplay, EveryPolicyKeepsItsAccountsAndRepeatsItself) {
  for (const std::string_view workload : WorkloadNames()) {
    const Trace trace = Workload(workload, 400);
    for (const std::string_view name : kv::EvictionPolicyNames()) {
      for (const uint64_t ghosts : {0u, 1u, 16u}) {
        const BlockReplayOptions options{
            .policy = std::string(name), .capacity_blocks = 100, .ghosts_per_block = ghosts};
        const BlockReplayResult result = Replay(trace, options);
        EXPECT_LE(result.inserted_blocks - result.evicted_blocks, 100u);
        EXPECT_GE(result.inserted_blocks, result.blocks - result.hit_blocks - result.evicted_blocks);
        EXPECT_EQ(Replay(trace, options).hit_blocks, result.hit_blocks);
        EXPECT_LE(result.TokenHitRate(), 1.0);
      }
    }
  }
}

TEST(BlockReplay, WhatDeepBlocksCostMoreIsSaved) {
  const Trace trace = Workload("chat", 4000);
  const auto saved = [&](double told) {
    const BlockReplayResult r = Replay(trace, {.capacity_blocks = 300, .positions_per_row = told});
    return std::pair(r.BlockHitRate(), r.SavedWorkRate());
  };
  EXPECT_NEAR(saved(0).second, Replay(trace, {.capacity_blocks = 300}).TokenHitRate(), 1e-9);
  EXPECT_LT(saved(100).first, saved(0).first);          // fewer blocks hit
  EXPECT_NEAR(saved(1e9).first, saved(0).first, 0.01);  // as if there were no attention
  EXPECT_FALSE(ReplayBlocks(trace, {.capacity_blocks = 1, .positions_per_row = -1}).ok());
  EXPECT_FALSE(ReplayBlocks(trace, {.capacity_blocks = 1, .positions_per_row = 0.5}).ok());
}

TEST(BlockReplay, RefusesAnUnknownPolicyNoCapacityAndAWarmUpOfAll) {
  const Trace trace = Requests({{0}});
  EXPECT_EQ(ReplayBlocks(trace, {.policy = "best", .capacity_blocks = 1}).status().message(),
            "unknown eviction policy \"best\": expected one of cost, lru, lfu, fifo, s3fifo, length, optimum");
  EXPECT_FALSE(ReplayBlocks(trace, {.capacity_blocks = 0}).ok());
  EXPECT_EQ(ReplayBlocks(trace, {.capacity_blocks = 1, .warm_up_requests = 100}).status().message(),
            "a warm-up of 100 requests leaves none of 1 to be counted: expected fewer");
  EXPECT_EQ(Replay(Requests({}), {.capacity_blocks = 5}).BlockHitRate(), 0);
}

}  // namespace
}  // namespace cachalot::sim
