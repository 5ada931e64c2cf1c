#include "sim/block_replay.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "sim/block_cache.h"
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

}  // namespace

Result<BlockReplayResult> ReplayBlocks(const Trace& trace, const BlockReplayOptions& options) {
  if (options.positions_per_row != 0 && !(options.positions_per_row >= 1)) {
    return Invalid(fmt::format("{} positions per row: expected 0, or 1 or more", options.positions_per_row));
  }
  if (options.capacity_blocks == 0 || options.capacity_blocks > kMaxCapacity) {
    return Invalid(fmt::format("capacity of {} blocks: expected 1 to {}", options.capacity_blocks, kMaxCapacity));
  }
  CACHALOT_RETURN_IF_ERROR(CheckWarmUp(trace, options.warm_up_requests));
  std::unique_ptr<kv::EvictionPolicy> policy;
  OptimumPolicy* optimum = nullptr;
  if (options.policy == kOptimumPolicy) {
    auto made = std::make_unique<OptimumPolicy>();
    optimum = made.get();
    policy = std::move(made);
  } else {
    Result<std::unique_ptr<kv::EvictionPolicy>> made = kv::MakeEvictionPolicy(options.policy);
    if (!made.ok()) return Invalid(fmt::format("{}, {}", made.status().message(), kOptimumPolicy));
    policy = std::move(made).value();
  }
  const uint64_t ghosts = std::min(options.ghosts_per_block, kMaxCapacity) * options.capacity_blocks;
  BlockCache cache(std::move(policy), {.capacity = options.capacity_blocks,
                                       .ghosts = ghosts,
                                       .leaves_only = options.leaves_only,
                                       .positions_per_row = options.positions_per_row});
  if (optimum != nullptr) optimum->Watch(&cache.NextUses());

  const std::vector<std::vector<uint64_t>> next_uses = NextUses(trace);
  BlockReplayResult result;
  for (size_t r = 0; r < trace.requests.size(); ++r) {
    const TraceRequest& request = trace.requests[r];
    const uint64_t hits = cache.Use(request, trace.block_tokens, next_uses[r]);
    if (r < options.warm_up_requests) continue;
    ++result.requests;
    result.blocks += request.blocks.size();
    result.hit_blocks += hits;
    result.input_tokens += request.input_tokens;
    const uint64_t hit_tokens = std::min(hits * trace.block_tokens, request.input_tokens);
    result.hit_tokens += hit_tokens;
    result.work += RowsWorth(0, request.input_tokens, options.positions_per_row);
    result.saved_work += RowsWorth(0, hit_tokens, options.positions_per_row);
  }
  result.inserted_blocks = cache.inserted();
  result.evicted_blocks = cache.evicted();
  return result;
}

}  // namespace cachalot::sim
