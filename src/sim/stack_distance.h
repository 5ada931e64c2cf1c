// StackDistances tells from one pass over a trace what LRU caches of every size would have hit.
// Threads:   a pure function, and plain data.
// Ownership: none.
// Invariant: what it says of a capacity is what ReplayBlocks with "lru" gives at that capacity, exactly, unless blocks
//            were sampled.
// Cost:      O(log live blocks) per block of the trace; memory linear in the blocks that the trace knows, or that are
//            sampled of them.
//
// A block's distance is the number of other blocks used since its last use (Mattson et al., 1970): a cache that holds
// more than that still has it. A request uses its blocks last block first, so a block is never nearer than one before
// it, and the leading run of resident blocks is all of them. With a share of the blocks, chosen by a hash of their ids,
// distances are scaled up by it, and the share that was really seen of all uses corrects the rates (SHARDS, Waldspurger
// et al., 2015, with its adjustment).
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "sim/trace.h"

namespace cachalot::sim {

struct StackDistanceOptions {
  double sampled = 1;             // share of the blocks that are looked at, above 0
  uint64_t warm_up_requests = 0;  // requests at the beginning that are not counted
};

class StackDistances {
 public:
  // Of a cache that holds so many blocks.
  double BlockHitRate(uint64_t capacity) const { return RateOf(blocks_, capacity); }
  double TokenHitRate(uint64_t capacity) const { return RateOf(tokens_, capacity); }
  // The smallest capacity that hits as much as any.
  uint64_t largest_useful_capacity() const;

 private:
  friend Result<StackDistances> MeasureStackDistances(const Trace& trace, const StackDistanceOptions& options);
  struct Sums {
    double all = 0;              // uses that the sample should have
    uint64_t seen = 0;           // that it has
    std::vector<uint64_t> hits;  // by distance d: uses at most that far

    void Expect(uint64_t amount, bool sampled, double share);
    void Count(uint64_t distance, uint64_t amount);
  };
  double RateOf(const Sums& sums, uint64_t capacity) const;

  double sampled_ = 1;
  Sums blocks_, tokens_;
};

// kInvalid for a share outside (0, 1], where it looks at none of the blocks, and for a warm-up that leaves no request.
Result<StackDistances> MeasureStackDistances(const Trace& trace, const StackDistanceOptions& options);

}  // namespace cachalot::sim
