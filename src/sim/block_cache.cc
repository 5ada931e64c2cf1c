#include "sim/block_cache.h"

#include <algorithm>

#include "base/check.h"

namespace cachalot::sim {

BlockCache::BlockCache(std::unique_ptr<kv::EvictionPolicy> policy, const Options& options)
    : policy_(std::move(policy)), options_(options) {}

kv::EntryId BlockCache::Name(uint64_t id, kv::EntryId parent) {
  const auto [found, is_new] = entry_of_.emplace(id, static_cast<kv::EntryId>(blocks_.size()));
  if (!is_new) return found->second;
  if (spare_.empty()) {
    blocks_.emplace_back();
  } else {
    found->second = spare_.back();
    spare_.pop_back();
  }
  blocks_[found->second] = {.id = id, .before = parent == kNone ? id : blocks_[parent].id, .parent = parent};
  return found->second;
}

Result<uint64_t> BlockCache::Use(const TraceRequest& request, uint32_t block_tokens,
                                 std::span<const uint64_t> next_uses) {
  uint64_t hits = 0, known = 0;
  path_.clear();
  for (size_t i = 0; i < request.blocks.size(); ++i) {
    const auto found = entry_of_.find(request.blocks[i]);
    if (found == entry_of_.end()) continue;
    const Block& block = blocks_[found->second];
    if (block.before != request.blocks[i == 0 ? 0 : i - 1]) return DisplacedId(block.id);
    if (known < i) continue;  // one before it is forgotten
    path_.push_back(found->second);
    if (block.resident && hits == known) ++hits;
    ++known;
  }
  kv::Arrival arrival{.now = request.arrival, .prompt_tokens = request.input_tokens};
  if (known > 0) arrival.deepest = path_.back();
  arrival.known_tokens = std::min(known * block_tokens, request.input_tokens);
  arrival.whole_tokens = request.input_tokens / block_tokens * block_tokens;
  const kv::VisitId visit = policy_->StartVisit(arrival);

  for (size_t i = known; i < request.blocks.size(); ++i) {
    path_.push_back(Name(request.blocks[i], path_.empty() ? kNone : path_.back()));
  }
  if (!next_uses.empty()) next_uses_.resize(blocks_.size());
  for (size_t i = path_.size(); i-- > 0;) {
    Block& block = blocks_[path_[i]];
    if (!next_uses.empty()) next_uses_[path_[i]] = next_uses[i];
    if (block.resident) {
      policy_->Touch(path_[i], request.arrival);
      continue;
    }
    const uint64_t end = std::min((i + 1) * block_tokens, request.input_tokens);
    kv::EntryInfo info{.position = end, .short_block = end % block_tokens != 0, .visit = visit};
    if (options_.positions_per_row > 0) {
      info.recompute_seconds = RowsWorth(i * block_tokens, end, options_.positions_per_row);
    }
    MakeResident(path_[i], info, request.arrival);
  }
  policy_->EndVisit(visit, request.arrival);
  if (options_.leaves_only && hits < path_.size()) policy_->BecomeCandidate(path_.back());
  while (resident_ > options_.capacity) EvictOne(request.arrival);
  ForgetOldGhosts();
  return hits;
}

void BlockCache::MakeResident(kv::EntryId entry, const kv::EntryInfo& info, Nanos now) {
  policy_->Insert(entry, info, now);
  Block& block = blocks_[entry];
  block.resident = true;
  ++resident_;
  ++inserted_;
  if (!options_.leaves_only) policy_->BecomeCandidate(entry);
  if (!options_.leaves_only || block.parent == kNone) return;
  // The last block of a request becomes a candidate at its end; a parent is none while a child is resident.
  Block& parent = blocks_[block.parent];
  if (parent.resident && parent.resident_children == 0) policy_->NotCandidate(block.parent);
  ++parent.resident_children;
}

void BlockCache::EvictOne(Nanos now) {
  const std::optional<kv::EntryId> victim = policy_->Victim(now);
  CACHALOT_CHECK(victim.has_value());
  Block& block = blocks_[*victim];
  CACHALOT_CHECK(block.resident && (!options_.leaves_only || block.resident_children == 0));
  policy_->Evict(*victim);
  block.resident = false;
  block.evicted = ++evicted_;
  ghost_queue_.push_back({*victim, block.evicted});
  --resident_;
  if (!options_.leaves_only || block.parent == kNone) return;
  if (--blocks_[block.parent].resident_children == 0) policy_->BecomeCandidate(block.parent);
}

// With leaves_only a block is evicted before its predecessor, so it is also forgotten before it.
void BlockCache::ForgetOldGhosts() {
  while (ghost_queue_.size() > options_.ghosts) {
    const Ghost oldest = ghost_queue_.front();
    ghost_queue_.pop_front();
    Block& block = blocks_[oldest.entry];
    if (block.resident || block.evicted != oldest.evicted) continue;
    policy_->Remove(oldest.entry);
    entry_of_.erase(block.id);
    block.evicted = 0;
    spare_.push_back(oldest.entry);
  }
}

}  // namespace cachalot::sim
