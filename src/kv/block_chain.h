// BlockChain names a token block together with all that precedes it, by hashes.
// Threads:   plain data and pure functions.
// Ownership: none.
// Invariant: equal tokens have equal `content`; equal tokens under equal salts have equal `owned`. For accounts alone:
//            what is found and shared is decided by comparing tokens.
// Cost:      two XXH3; about 15 ns for 16 tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/hash.h"
#include "base/prefix_scope.h"

namespace cachalot::kv {

struct BlockChain {
  uint64_t content = 0;
  uint64_t owned = 0;
};

inline uint64_t ExtendContent(uint64_t before, std::span<const TokenId> tokens) {
  return Hash64({reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes()}, before);
}

// `salt`: of the block that follows.
inline uint64_t ExtendOwned(uint64_t before, uint64_t content, const CacheSalt& salt) {
  const uint64_t fields[] = {before, content, salt.high, salt.low};
  return Hash64({reinterpret_cast<const char*>(fields), sizeof fields});
}

inline BlockChain ExtendChain(const BlockChain& before, std::span<const TokenId> tokens, const CacheSalt& salt) {
  const uint64_t content = ExtendContent(before.content, tokens);
  return {content, ExtendOwned(before.owned, content, salt)};
}

}  // namespace cachalot::kv
