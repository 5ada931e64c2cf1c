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

void KvManager::BeginCopyOut(SlotId slot) { state_->pool.BeginCopyOut(slot); }
void KvManager::EndCopyOut(SlotId slot) { state_->pool.EndCopyOut(slot); }
uint32_t KvManager::deferred_slots() const { return state_->pool.deferred_count(); }
uint32_t KvManager::leaving_slots() const { return state_->pool.transfers().leaving(); }

}  // namespace cachalot::kv
