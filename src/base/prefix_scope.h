// PrefixScope says who may find whose blocks.
// Threads:   plain data and a pure function.
// Ownership: none.
// Invariant: beyond the first public_tokens, blocks are found only by requests of the same salt.
// Cost:      CommonTokens is linear in what it counts.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <span>

#include "base/ids.h"

namespace cachalot {

// Separates those who must not find each other's blocks; zero is everybody's. A digest, so equal means same.
struct CacheSalt {
  uint64_t high = 0;
  uint64_t low = 0;
  auto operator<=>(const CacheSalt&) const = default;
};

struct PrefixScope {
  CacheSalt salt;
  uint64_t public_tokens = 0;
  bool operator==(const PrefixScope&) const = default;
};

// Of a block that ends after so many tokens.
inline CacheSalt SaltAt(const PrefixScope& scope, uint64_t end) {
  return end <= scope.public_tokens ? CacheSalt{} : scope.salt;
}

// Tokens that `a` and `b` begin with alike.
inline uint32_t CommonTokens(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<uint32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace cachalot
