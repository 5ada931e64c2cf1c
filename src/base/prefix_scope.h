// PrefixScope says who may find whose blocks.
// Threads:   plain data.
// Ownership: none.
// Invariant: beyond the first public_tokens, blocks are found only by requests of the same salt.
// Cost:      none.
#pragma once

#include <compare>
#include <cstdint>

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
};

}  // namespace cachalot
