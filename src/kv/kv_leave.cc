// Blocks that give way to others: who hears of it, and how their slots are held while they are copied.
#include "base/check.h"
#include "kv/identity.h"
#include "kv/kv_state.h"

namespace cachalot::kv {
namespace {

// Those before it get theirs on the way, so that a chain is hashed once.
const Digest& DigestOf(PrefixNode& node, const Digest& identity, std::vector<PrefixNode*>* path) {
  path->clear();
  PrefixNode* known = &node;
  for (; known->parent != nullptr && !known->digest; known = known->parent) path->push_back(known);
  ChainEnd end{known->digest.value_or(Digest{}), known->salt};
  for (auto next = path->rbegin(); next != path->rend(); ++next) {
    end = NextInChain(identity, end, (*next)->salt, (*next)->key().tokens);
    (*next)->digest = end.key;
  }
  return *node.digest;
}

}  // namespace

void KvManager::OnLeaving(const Digest& identity, std::function<void(const LeavingBlock&)> call) {
  State& state = *state_;
  if (state.index == nullptr) return;
  state.index->OnLeaving([&state, identity, call = std::move(call)](PrefixNode& node, std::span<const uint32_t> slots) {
    const uint64_t position = uint64_t{node.block} * state.geometry.block_tokens;
    call({DigestOf(node, identity, &state.chain_path), position, node.count, slots, node.wanted_until});
  });
}

uint32_t KvManager::EvictIdle(const PrefixScope& scope, std::span<const TokenId> tokens, uint64_t from, Loss loss) {
  State& state = *state_;
  CACHALOT_CHECK(!state.open);
  if (state.index == nullptr) return 0;
  const uint64_t evicted = state.index->evicted_slots();
  state.index->EvictIdle(scope, tokens, from, loss);
  return static_cast<uint32_t>(state.index->evicted_slots() - evicted);
}

void KvManager::EvictAhead(uint32_t slots) {
  State& state = *state_;
  CACHALOT_CHECK(!state.open);
  const uint32_t enough = state.pool.given_up_count() + slots;
  while (state.index != nullptr && state.pool.given_up_count() < enough && state.index->EvictOne()) {
  }
}

std::vector<Digest> KvManager::TakeBack(const Digest& identity, const PrefixScope& scope,
                                        std::span<const TokenId> tokens, const GivenUpBlocks& given_up) {
  State& state = *state_;
  CACHALOT_CHECK(!state.open);
  std::vector<Digest> taken;
  if (state.index == nullptr) return taken;
  const uint64_t block_tokens = state.geometry.block_tokens;
  PrefixIndex& index = *state.index;
  PrefixNode* node = &index.root();
  PrefixNode* last = nullptr;  // that was taken back
  Retention wish;
  for (uint64_t begin = 0; begin + block_tokens <= tokens.size(); begin += block_tokens) {
    const PrefixKey key = index.KeyOf(scope, node->end_block(), tokens.subspan(begin, block_tokens));
    PrefixNode* child = index.Child(*node, key);
    if (child != nullptr && child->writer.value != 0) break;  // it is computed again already
    if (!state.HasAll(child)) {
      const ChainEnd before =
          node->parent == nullptr ? ChainEnd{} : ChainEnd{DigestOf(*node, identity, &state.chain_path), node->salt};
      std::optional<GivenUpBlock> found = given_up(NextInChain(identity, before, key.salt, key.tokens).key);
      if (found && state.MayTakeBack(child, &found->slots)) {
        wish.deadline = found->wanted_until;
        child = last = index.TakeBack(*node, key, found->slots,
                                      {.slots = state.groups(),
                                       .position = begin + block_tokens,
                                       .recompute_seconds = index.RecomputeSeconds(begin, begin + block_tokens),
                                       .retention = wish});
        taken.push_back(found->key);
      }
    }
    if (child == nullptr || !state.HasAll(child, SlotUse::kFull)) break;
    node = child;
  }
  if (last != nullptr) index.MarkResume(*last, wish);
  return taken;
}

// Whether all groups' parts of the block are there, or those of one kind.
bool KvManager::State::HasAll(const PrefixNode* node, std::optional<SlotUse> use) const {
  for (uint32_t group = 0; group < groups(); ++group) {
    const SlotUse of_group = geometry.windows[group] == 0 ? SlotUse::kFull : SlotUse::kSliding;
    if ((!use || of_group == *use) && (node == nullptr || node->slots[group] == kNoSlot)) return false;
  }
  return true;
}

// Leaves out what is not given up any more. Whether there is something, and with it all of full attention.
bool KvManager::State::MayTakeBack(const PrefixNode* node, std::vector<uint32_t>* slots) const {
  bool any = false;
  for (uint32_t group = 0; group < groups(); ++group) {
    uint32_t& slot = (*slots)[group];
    if (slot != kNoSlot && !pool.transfers().slot(SlotId(slot)).released) slot = kNoSlot;
    any |= slot != kNoSlot;
    const bool there = slot != kNoSlot || (node != nullptr && node->slots[group] != kNoSlot);
    if (geometry.windows[group] == 0 && !there) return false;
  }
  return any;
}

void KvManager::BeginCopyOut(SlotId slot) { state_->pool.BeginCopyOut(slot); }
void KvManager::EndCopyOut(SlotId slot) { state_->pool.EndCopyOut(slot); }
uint32_t KvManager::deferred_slots() const { return state_->pool.deferred_count(); }
uint32_t KvManager::leaving_slots() const { return state_->pool.transfers().leaving(); }

}  // namespace cachalot::kv
