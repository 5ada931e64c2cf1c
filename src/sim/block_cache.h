// BlockCache is a prefix cache of block ids: what the prefix index is to tokens, for traces that know ids only.
// Threads:   one.
// Ownership: owns its blocks and its policy.
// Invariant: with leaves_only a resident block's predecessor is resident; between two calls of Use() at most `capacity`
//            are.
// Cost:      O(log capacity) per block.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "kv/eviction.h"
#include "sim/trace.h"

namespace cachalot::sim {

// What tokens [begin, end) of a prompt cost to compute, in rows that see nothing, when attention to `positions_per_row`
// positions costs as much as the rest of a row; 0: attention costs nothing.
inline double RowsWorth(uint64_t begin, uint64_t end, double positions_per_row) {
  const double per_position = positions_per_row == 0 ? 0 : 1 / positions_per_row;
  return static_cast<double>(end - begin) * (1 + per_position * static_cast<double>(begin + end) / 2);
}

class BlockCache {
 public:
  struct Options {
    uint64_t capacity = 0;         // blocks
    uint64_t ghosts = 0;           // evicted blocks that are remembered
    bool leaves_only = true;       // a block goes only when none that follows it is resident
    double positions_per_row = 0;  // see RowsWorth; 0: the policy is told that all blocks cost alike
  };
  BlockCache(std::unique_ptr<kv::EvictionPolicy> policy, const Options& options);

  // How many leading blocks were resident; then all are touched or inserted. `next_uses`, one per block or empty, is
  // kept where NextUses() is read. kInvalid, and nothing happens, where a block that is known follows another one than
  // before. Requires: no id is twice in the request.
  Result<uint64_t> Use(const TraceRequest& request, uint32_t block_tokens, std::span<const uint64_t> next_uses);

  uint64_t inserted() const { return inserted_; }
  uint64_t evicted() const { return evicted_; }
  // By entry: when its block is used next, as last told.
  const std::vector<uint64_t>& NextUses() const { return next_uses_; }

 private:
  static constexpr kv::EntryId kNone = UINT32_MAX;
  struct Block {
    uint64_t id = 0;
    uint64_t before = 0;  // id that it follows, which may be forgotten; its own: none
    kv::EntryId parent = kNone;
    uint32_t resident_children = 0;
    bool resident = false;
    uint64_t evicted = 0;  // number of its last eviction
  };
  struct Ghost {
    kv::EntryId entry;
    uint64_t evicted;
  };
  void MakeResident(kv::EntryId entry, const kv::EntryInfo& info, Nanos now);
  kv::EntryId Name(uint64_t id, kv::EntryId parent);
  void EvictOne(Nanos now);
  void ForgetOldGhosts();

  std::unique_ptr<kv::EvictionPolicy> policy_;
  const Options options_;
  std::vector<Block> blocks_;  // by entry
  std::vector<kv::EntryId> spare_;
  std::unordered_map<uint64_t, kv::EntryId> entry_of_;  // by id
  std::deque<Ghost> ghost_queue_;                       // oldest first; those that are back are skipped
  std::vector<uint64_t> next_uses_;
  std::vector<kv::EntryId> path_;  // scratch
  uint64_t resident_ = 0;
  uint64_t inserted_ = 0;
  uint64_t evicted_ = 0;
};

}  // namespace cachalot::sim
