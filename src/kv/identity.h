// Identity is what must match for KV to be used again; block keys name a block's KV outside of this process by it.
// Threads:   pure functions.
// Ownership: none.
// Invariant: different fields give different identities, and different identities, scopes or tokens different keys:
//            every part is length-prefixed, and each kind of digest has a domain of its own.
// Cost:      one SHA-256 per identity and per block.
//
// Inside the process tokens are compared, never keys (kv/prefix_tree.h); what comes back under a key brings its tokens
// along, which are compared again.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "base/kv_layout.h"
#include "base/prefix_scope.h"

namespace cachalot::kv {

// How layers of one kind rotate by position, evaluated for the context that is served.
struct PositionSettings {
  double theta = 0;
  double position_scale = 1;
  uint32_t dims = 0;
  std::vector<float> factors;
};

struct IdentityFields {
  Digest model{};      // model fingerprint: metadata, weights and their format
  Digest adapter{};    // of its content; zero: there is none
  Digest tokenizer{};  // tokenizer fingerprint
  std::vector<PositionSettings> positions;
  std::string codec;  // its parameters; empty: KV as attention reads it
  KvLayout layout;
  std::string numerics;  // exec/numerics.h
};

Digest IdentityOf(const IdentityFields& fields);

// The key of a block: a chain over the identity, the parent's key and the block's tokens.
Digest BlockKey(const Digest& identity, const Digest& parent, std::span<const TokenId> tokens);

// How far a chain has come. The salt is a link of it, before the first block that is not everybody's.
struct ChainEnd {
  Digest key{};
  CacheSalt salt;
};
ChainEnd NextInChain(const Digest& identity, const ChainEnd& before, const CacheSalt& salt,
                     std::span<const TokenId> tokens);

// Whether an unfilled block at the end counts, as one that was sealed short.
enum class Tail : uint8_t { kWholeOnly, kShortToo };

// Keys of the blocks of `tokens`, from the beginning.
std::vector<Digest> BlockKeys(const Digest& identity, const PrefixScope& scope, uint32_t block_tokens,
                              std::span<const TokenId> tokens, Tail tail = Tail::kWholeOnly);

}  // namespace cachalot::kv
