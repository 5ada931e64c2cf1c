// BlockReplay runs a trace through a cache of blocks and one of the server's own eviction policies, without a model.
// Threads:   one.
// Ownership: owns its cache.
// Invariant: the same trace and options give the same result.
// Cost:      O(log capacity) per block of the trace; memory for the blocks that the cache knows, however long the trace
//            is. ReplayBlocks with the policy that looks ahead: for all uses of blocks besides.
//
// A request hits the leading run of its blocks that are resident; then all its blocks are touched or inserted, last
// block first, so that tails leave first.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "kv/eviction.h"
#include "sim/block_cache.h"
#include "sim/trace.h"

namespace cachalot::sim {

// The policy that looks ahead: what is wanted again latest goes first (Belady). No policy can do better.
inline constexpr const char* kOptimumPolicy = "optimum";

struct BlockReplayOptions {
  std::string policy = "cost";  // of kv::EvictionPolicyNames(), or kOptimumPolicy
  uint64_t capacity_blocks = 0;
  uint64_t ghosts_per_block = 16;  // evicted blocks that are remembered, as multiple of the capacity
  uint64_t warm_up_requests = 0;   // requests at the beginning that are not counted
  double positions_per_row = 0;    // attention to so many costs as much as the rest of a row; 0: all blocks cost alike
  bool leaves_only = true;         // as in the server; published simulators let blocks go whose followers stay
};

struct BlockReplayResult {
  uint64_t requests = 0;
  uint64_t blocks = 0;
  uint64_t hit_blocks = 0;
  uint64_t input_tokens = 0;
  uint64_t hit_tokens = 0;
  uint64_t inserted_blocks = 0;
  uint64_t evicted_blocks = 0;
  double work = 0;  // of computing all prompts, in rows that see nothing
  double saved_work = 0;

  double BlockHitRate() const {
    return blocks == 0 ? 0 : static_cast<double>(hit_blocks) / static_cast<double>(blocks);
  }
  double TokenHitRate() const {
    return input_tokens == 0 ? 0 : static_cast<double>(hit_tokens) / static_cast<double>(input_tokens);
  }
  double SavedWorkRate() const { return work == 0 ? 0 : saved_work / work; }
};

// Takes the requests one after the other.
class BlockReplay {
 public:
  // kInvalid for an unknown policy, for one that looks ahead, and for a capacity of 0.
  static Result<BlockReplay> Make(const BlockReplayOptions& options);

  // See BlockCache::Use.
  Status Take(const TraceRequest& request, uint32_t block_tokens);
  // kInvalid for a warm-up that left no request.
  Result<BlockReplayResult> Finish() const;

 private:
  friend Result<BlockReplayResult> ReplayBlocks(const Trace& trace, const BlockReplayOptions& options);
  BlockReplay(const BlockReplayOptions& options, std::unique_ptr<kv::EvictionPolicy> policy);
  Status Use(const TraceRequest& request, uint32_t block_tokens, std::span<const uint64_t> next_uses);

  BlockReplayOptions options_;
  BlockCache cache_;
  BlockReplayResult result_;
  uint64_t taken_ = 0;  // requests, those of the warm-up too
};

// Of a whole trace, and also with the policy that looks ahead.
Result<BlockReplayResult> ReplayBlocks(const Trace& trace, const BlockReplayOptions& options);

}  // namespace cachalot::sim
