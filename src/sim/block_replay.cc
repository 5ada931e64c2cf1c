#include "sim/block_replay.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/optimum.h"

namespace cachalot::sim {
namespace {

constexpr uint64_t kMaxCapacity = uint64_t{1} << 30;

// By request and block: the number of the next request that uses it.
std::vector<std::vector<uint64_t>> NextUses(const Trace& trace) {
  std::vector<std::vector<uint64_t>> uses(trace.requests.size());
  std::unordered_map<uint64_t, uint64_t> next;
  for (size_t r = trace.requests.size(); r-- > 0;) {
    for (const uint64_t id : trace.requests[r].blocks) {
      const auto [found, is_new] = next.emplace(id, r);
      uses[r].push_back(is_new ? std::numeric_limits<uint64_t>::max() : found->second);
      found->second = r;
    }
  }
  return uses;
}

Status CheckOptions(const BlockReplayOptions& options) {
  if (options.positions_per_row != 0 && !(options.positions_per_row >= 1)) {
    return Invalid(fmt::format("{} positions per row: expected 0, or 1 or more", options.positions_per_row));
  }
  if (options.capacity_blocks == 0 || options.capacity_blocks > kMaxCapacity) {
    return Invalid(fmt::format("capacity of {} blocks: expected 1 to {}", options.capacity_blocks, kMaxCapacity));
  }
  return OkStatus();
}

}  // namespace

BlockReplay::BlockReplay(const BlockReplayOptions& options, std::unique_ptr<kv::EvictionPolicy> policy)
    : options_(options),
      cache_(std::move(policy), {.capacity = options.capacity_blocks,
                                 .ghosts = std::min(options.ghosts_per_block, kMaxCapacity) * options.capacity_blocks,
                                 .leaves_only = options.leaves_only,
                                 .positions_per_row = options.positions_per_row}) {}

Result<BlockReplay> BlockReplay::Make(const BlockReplayOptions& options) {
  CACHALOT_RETURN_IF_ERROR(CheckOptions(options));
  Result<std::unique_ptr<kv::EvictionPolicy>> policy = kv::MakeEvictionPolicy(options.policy);
  if (!policy.ok()) return Invalid(fmt::format("{}, {}", policy.status().message(), kOptimumPolicy));
  return BlockReplay(options, std::move(policy).value());
}

Status BlockReplay::Take(const TraceRequest& request, uint32_t block_tokens) { return Use(request, block_tokens, {}); }

Status BlockReplay::Use(const TraceRequest& request, uint32_t block_tokens, std::span<const uint64_t> next_uses) {
  CACHALOT_ASSIGN_OR_RETURN(const uint64_t hits, cache_.Use(request, block_tokens, next_uses));
  if (taken_++ < options_.warm_up_requests) return OkStatus();
  ++result_.requests;
  result_.blocks += request.blocks.size();
  result_.hit_blocks += hits;
  result_.input_tokens += request.input_tokens;
  const uint64_t hit_tokens = std::min(hits * block_tokens, request.input_tokens);
  result_.hit_tokens += hit_tokens;
  result_.work += RowsWorth(0, request.input_tokens, options_.positions_per_row);
  result_.saved_work += RowsWorth(0, hit_tokens, options_.positions_per_row);
  return OkStatus();
}

Result<BlockReplayResult> BlockReplay::Finish() const {
  CACHALOT_RETURN_IF_ERROR(CheckWarmUp(taken_, options_.warm_up_requests));
  BlockReplayResult result = result_;
  result.inserted_blocks = cache_.inserted();
  result.evicted_blocks = cache_.evicted();
  return result;
}

Result<BlockReplayResult> ReplayBlocks(const Trace& trace, const BlockReplayOptions& options) {
  CACHALOT_RETURN_IF_ERROR(CheckWarmUp(trace.requests.size(), options.warm_up_requests));
  if (options.policy != kOptimumPolicy) {
    CACHALOT_ASSIGN_OR_RETURN(BlockReplay replay, BlockReplay::Make(options));
    for (const TraceRequest& request : trace.requests) {
      CACHALOT_RETURN_IF_ERROR(replay.Take(request, trace.block_tokens));
    }
    return replay.Finish();
  }
  CACHALOT_RETURN_IF_ERROR(CheckOptions(options));
  auto policy = std::make_unique<OptimumPolicy>();
  OptimumPolicy& optimum = *policy;
  BlockReplay replay(options, std::move(policy));
  optimum.Watch(&replay.cache_.NextUses());
  const std::vector<std::vector<uint64_t>> next_uses = NextUses(trace);
  for (size_t r = 0; r < trace.requests.size(); ++r) {
    CACHALOT_RETURN_IF_ERROR(replay.Use(trace.requests[r], trace.block_tokens, next_uses[r]));
  }
  return replay.Finish();
}

}  // namespace cachalot::sim
