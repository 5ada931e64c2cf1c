// ReplayBlocks runs a trace through a cache of blocks and one of the server's own eviction policies, without a model.
// Threads:   a pure function.
// Ownership: none.
// Invariant: the same trace and options give the same result.
// Cost:      O(log capacity) per block of the trace.
//
// A request hits the leading run of its blocks that are resident; then all its blocks are touched or inserted, last
// block first, so that tails leave first.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
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

// kInvalid for an unknown policy, a capacity of 0, and a warm-up that leaves no request.
Result<BlockReplayResult> ReplayBlocks(const Trace& trace, const BlockReplayOptions& options);

}  // namespace cachalot::sim
