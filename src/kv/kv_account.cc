// What the shadow index is told of sequences. Without a prefix index it is told the same.
#include <utility>

#include "base/check.h"
#include "kv/kv_state.h"

namespace cachalot::kv {

ShadowSight KvManager::State::Arrive(Sequence& sequence, std::span<const TokenId> tokens) {
  CACHALOT_CHECK(sequence.shadow == ShadowIndex::kNoVisit);
  ShadowSight sight;
  if (shadow != nullptr) sequence.shadow = shadow->Arrive(sequence.scope, tokens, &sight);
  return sight;
}

HitAccount KvManager::State::AccountOf(const Sequence& sequence, const HitFacts& facts,
                                       const ShadowSight& sight) const {
  return sequence.shadow == ShadowIndex::kNoVisit ? HitAccount{} : kv::AccountOf(facts, sight);
}

void KvManager::State::ForkInShadow(const Sequence& parent, Sequence& child) {
  if (parent.shadow == ShadowIndex::kNoVisit) return;
  child.shadow = shadow->Fork(parent.shadow, parent.length);
  child.chain = parent.chain;
}

void KvManager::State::SealInShadow(Sequence& sequence, uint64_t block, const BlockChain& chain) {
  if (sequence.shadow == ShadowIndex::kNoVisit) return;
  sequence.chain = chain;
  shadow->Seal(sequence.shadow, static_cast<uint32_t>(block), chain);
}

// Without the index nobody else needs the tokens of whole blocks.
void KvManager::State::SealUnindexed(Sequence& sequence) {
  const uint32_t block_tokens = geometry.block_tokens;
  const uint64_t begin = sequence.length - sequence.unsealed.size();
  std::span<const TokenId> left = sequence.unsealed;
  for (uint64_t block = begin / block_tokens; left.size() >= block_tokens; ++block) {
    const CacheSalt salt = SaltAt(sequence.scope, (block + 1) * block_tokens);
    SealInShadow(sequence, block, ExtendChain(sequence.chain, left.first(block_tokens), salt));
    left = left.subspan(block_tokens);
  }
  sequence.unsealed.erase(sequence.unsealed.begin(), sequence.unsealed.end() - static_cast<ptrdiff_t>(left.size()));
}

void KvManager::State::EndInShadow(Sequence& sequence) {
  if (sequence.shadow == ShadowIndex::kNoVisit) return;
  const uint64_t content =
      sequence.unsealed.empty() ? sequence.chain.content : ExtendContent(sequence.chain.content, sequence.unsealed);
  shadow->End(std::exchange(sequence.shadow, ShadowIndex::kNoVisit), sequence.length, content);
}

}  // namespace cachalot::kv
